/* Communicators, windows and files: which name they have in the record, who their ranks are. */

#ifndef RECORDER_OBJECTS_C
#define RECORDER_OBJECTS_C

#include "recorder.c"

struct communicator {
    int references; /* of the table, windows, files and requests */
    int number;     /* of its name in the record of `generation` */
    unsigned generation;
    int size, rank;
    bool inter;
    int peers;  /* ranks that can be named in calls: of an intercommunicator the remote ones */
    int *ranks; /* theirs in MPI_COMM_WORLD, NULL: the same */
    uint64_t members; /* hash of omb_py.tracing.records.layout */
    char key[40];
    MPI_Comm comm;
    int64_t collectives;
};

#define KEY_OF(handle) ((uint64_t)(uintptr_t)(handle))

static struct table communicators = {.most = 1 << 20}, windows = {.most = 1 << 20};
static struct table files = {.most = 1 << 20}, instances = {.most = 1 << 20};
static unsigned epoch = 1; /* counts changes of what handles stand for */
static MPI_Group world_group = MPI_GROUP_NULL;

static void release(struct communicator *communicator)
{
    if (communicator && !--communicator->references) {
        free(communicator->ranks);
        free(communicator);
    }
}

/* The ranks in MPI_COMM_WORLD of a group's members, NULL without memory. */
static int *world_ranks(MPI_Group group, int size)
{
    int *own = malloc((size + 1) * sizeof *own), *found = malloc((size + 1) * sizeof *found);
    for (int i = 0; own && found && i < size; i++)
        own[i] = i;
    bool known = own && found && world_group != MPI_GROUP_NULL &&
                 PMPI_Group_translate_ranks(group, size, own, world_group, found) == MPI_SUCCESS;
    for (int i = 0; found && i < size; i++)
        if (!known || found[i] < 0)
            found[i] = ELSEWHERE;
    free(own);
    return found;
}

static uint64_t hash_of_ranks(uint64_t hash, const int *ranks, int count)
{
    char text[16];
    for (int i = 0; ranks && i < count; i++) {
        const char *separator = hash == FNV_START ? "" : ",";
        hash = fnv(hash, text, snprintf(text, sizeof text, "%s%d", separator, ranks[i]));
    }
    return hash;
}

static uint64_t hash_of_members(const int *local, int size, const int *remote, int others)
{
    const int between = BETWEEN;
    if (!remote)
        return hash_of_ranks(FNV_START, local, size);
    bool first = !size || !others || !local || local[0] <= remote[0];
    uint64_t hash = hash_of_ranks(FNV_START, first ? local : remote, first ? size : others);
    hash = hash_of_ranks(hash, &between, 1);
    return hash_of_ranks(hash, first ? remote : local, first ? others : size);
}

/* One more communicator of the same members. Locked. */
static void give_key(struct communicator *communicator)
{
    int64_t *met = find(&instances, communicator->members, 0);
    int64_t instance = met ? *met + 1 : 1;
    add(&instances, communicator->members, 0, instance);
    snprintf(communicator->key, sizeof communicator->key, "%016" PRIx64 "#%" PRId64,
             communicator->members, instance);
}

/* What there is to know of a communicator, NULL without memory. Not locked: it asks MPI. */
static struct communicator *described(MPI_Comm comm)
{
    struct communicator *made = calloc(1, sizeof *made);
    int inter = 0, others = 0, *local, *remote = NULL;
    MPI_Group group;
    if (!made)
        return NULL;
    if (world_group == MPI_GROUP_NULL && started && !finished)
        PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    made->references = 1;
    made->comm = comm;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) {
        free(made);
        return NULL;
    }
    PMPI_Comm_size(comm, &made->size);
    PMPI_Comm_rank(comm, &made->rank);
    PMPI_Comm_group(comm, &group);
    local = world_ranks(group, made->size);
    PMPI_Group_free(&group);
    if (inter) {
        PMPI_Comm_remote_size(comm, &others);
        PMPI_Comm_remote_group(comm, &group);
        remote = world_ranks(group, others);
        PMPI_Group_free(&group);
    }
    made->members = hash_of_members(local, made->size, remote, others);
    made->ranks = inter ? remote : local;
    made->inter = inter;
    made->peers = inter ? others : made->size;
    if (comm == MPI_COMM_WORLD)
        strcpy(made->key, "world");
    else if (comm == MPI_COMM_SELF)
        snprintf(made->key, sizeof made->key, "self-%d", local ? local[0] : 0);
    if (inter)
        free(local);
    bool same = made->ranks != NULL;
    for (int i = 0; same && i < made->peers; i++)
        same = made->ranks[i] == i;
    if (same) {
        free(made->ranks);
        made->ranks = NULL;
    }
    return made;
}

/* From now on a handle stands for this one, which gets its key if it has none. Locked. */
static void keep(struct communicator *communicator)
{
    uint64_t handle = KEY_OF(communicator->comm);
    release(pointer_in(&communicators, handle));
    if (!communicator->key[0])
        give_key(communicator);
    communicator->references += !add(&communicators, handle, 0, (intptr_t)communicator);
    epoch++;
}

/* A communicator has just been made. */
static void made_communicator(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return;
    struct communicator *made = described(comm);
    if (!made)
        return;
    lock();
    keep(made);
    unlock();
}

/* What is known of a communicator, NULL for MPI_COMM_NULL. */
static struct communicator *known(MPI_Comm comm)
{
    if (mine.handle == KEY_OF(comm) && mine.epoch == epoch)
        return mine.communicator;
    if (comm == MPI_COMM_NULL)
        return NULL;
    lock();
    struct communicator *communicator = pointer_in(&communicators, KEY_OF(comm));
    unlock();
    if (!communicator) {
        struct communicator *made = described(comm);
        if (!made)
            return NULL;
        lock();
        communicator = pointer_in(&communicators, KEY_OF(comm));
        if (communicator) /* another thread was faster */
            release(made);
        else
            keep(communicator = made);
        unlock();
    }
    mine.handle = KEY_OF(comm);
    mine.epoch = epoch;
    mine.communicator = communicator;
    return communicator;
}

static void forget_communicator(uint64_t handle)
{
    lock();
    struct communicator *old = pointer_in(&communicators, handle);
    if (old) {
        take_out(&communicators, handle, 0);
        old->comm = MPI_COMM_NULL; /* windows and files of it may go on */
        release(old);
        epoch++;
    }
    unlock();
}

static inline int world_rank(const struct communicator *communicator, int peer)
{
    if (!communicator || peer < 0 || peer >= communicator->peers)
        return NOBODY;
    if (!communicator->ranks)
        return peer;
    return communicator->ranks[peer] < 0 ? NOBODY : communicator->ranks[peer];
}

/* Append text as a part of a JSON text. */
static size_t quoted(char *into, size_t length, size_t room, const char *text)
{
    for (; *text && length + 8 < room; text++) {
        unsigned char letter = (unsigned char)*text;
        if (letter == '"' || letter == '\\')
            length += snprintf(into + length, room - length, "\\%c", letter);
        else if (letter < ' ' || letter == 127)
            length += snprintf(into + length, room - length, "\\u%04x", letter);
        else
            into[length++] = *text;
    }
    return length;
}

/* Give a communicator its number in this record; it is named as people named it until then. */
static void name_communicator(struct communicator *communicator)
{
    char label[MPI_MAX_OBJECT_NAME + 1] = "", line[3 * MPI_MAX_OBJECT_NAME + 128];
    int length = 0;
    if (communicator->comm != MPI_COMM_NULL)
        PMPI_Comm_get_name(communicator->comm, label, &length);
    if (!label[0])
        snprintf(label, sizeof label, "%d ranks",
                 communicator->size + (communicator->inter ? communicator->peers : 0));
    int skipped = strncmp(label, "MPI_", 4) ? 0 : 4;
    size_t end = snprintf(line, sizeof line, "communicator [\"%s\", %d, \"", communicator->key,
                          communicator->size);
    end = quoted(line, end, sizeof line, label + skipped);
    end += snprintf(line + end, sizeof line - end, "\"]");
    lock();
    communicator->number = number_of_name(line, end);
    communicator->generation = generation;
    communicator->collectives = 0;
    unlock();
}

static inline int number_of(struct communicator *communicator)
{
    if (!communicator)
        return 0;
    if (communicator->generation != generation)
        name_communicator(communicator);
    return communicator->number;
}

/* Windows and files stand for the communicator that they were made of. */

static void made_of(struct table *table, uint64_t handle, MPI_Comm comm)
{
    struct communicator *communicator = known(comm);
    if (!communicator)
        return;
    lock();
    release(pointer_in(table, handle));
    communicator->references += add(table, handle, 0, (intptr_t)communicator);
    unlock();
}

static struct communicator *behind(struct table *table, uint64_t handle)
{
    lock();
    struct communicator *communicator = pointer_in(table, handle);
    unlock();
    return communicator;
}

static void forget_object(struct table *table, uint64_t handle)
{
    lock();
    struct communicator *communicator = pointer_in(table, handle);
    take_out(table, handle, 0);
    release(communicator);
    unlock();
}

#endif
