/* A call while it is made: what a wrapper tells of it, and how it gets into the record. */

#ifndef RECORDER_CALLS_C
#define RECORDER_CALLS_C

#include "recorder_objects.c"
#include "recorder_sites.c"

struct half { /* one direction of a message */
    int peer, tag;
    bool wildcard;
    uint32_t order; /* of a receive: see ORDER_STEP in layout.py */
    int64_t nbytes, sequence;
};

struct call {
    struct routine *routine;
    struct communicator *where;
    int communicator;
    bool receives, arrives; /* `half` is what is received; `second` is, too */
    bool prepares;          /* a persistent request, for later */
    bool apart;             /* its cell tells neither peer nor bytes */
    bool own_status;
    bool told;              /* who is awaited, which otherwise the halves have */
    struct half half, second;
    int64_t request, began, ended;
};

static struct table sequences = {.most = 1 << 18};
static unsigned sequences_of; /* generation */
static int64_t requests_begun, receives_begun;
static int wildcards_open; /* receives of any source or tag that have not been completed */

static inline uint64_t direction(bool received, int communicator, int peer)
{
    return (uint64_t)received << 63 | (uint64_t)communicator << 32 | (uint32_t)peer;
}

/* How many messages of this direction there were, and one more; NULL for none yet. Locked. */
static int64_t *message_count(bool received, int communicator, int peer, int tag)
{
    if (sequences_of != generation) {
        clear(&sequences);
        sequences_of = generation;
        wildcards_open = 0;
    }
    return find(&sequences, direction(received, communicator, peer), (uint32_t)tag);
}

/* The number of one more message of this direction; 0 where it has no peer, or too many have been
 * counted. Locked. */
static int64_t next_message(bool received, int communicator, int peer, int tag)
{
    if (peer == NOBODY || !communicator)
        return 0;
    int64_t *count = message_count(received, communicator, peer, tag);
    if (count)
        return (*count)++;
    return add(&sequences, direction(received, communicator, peer), (uint32_t)tag, 2);
}

/* Whether a receive of any source or tag, which names this tag (-1: any), is open; `more` will be: they
 * are counted as messages of nobody, from 1. Locked. */
static bool wildcard_open(int communicator, int tag, int more)
{
    int64_t *count = message_count(true, communicator, NOBODY, tag);
    if (count)
        return (*count += more) > 1;
    return more > 0 && add(&sequences, direction(true, communicator, NOBODY), (uint32_t)tag, 1 + more);
}

/* A receive takes its place among this rank's, and its number if it names its message. Locked. */
static void post(struct half *half, int communicator)
{
    half->sequence = 0;
    if (half->peer == NOBODY && !half->wildcard)
        return;
    bool mixed = half->wildcard ? wildcards_open > 0
                                : wildcard_open(communicator, half->tag, 0) ||
                                      wildcard_open(communicator, -1, 0);
    half->order = (uint32_t)++receives_begun * ORDER_STEP | (mixed ? MIXED : 0);
    if (half->wildcard) {
        wildcard_open(communicator, half->tag, 1);
        wildcards_open++;
    } else {
        half->sequence = next_message(true, communicator, half->peer, half->tag);
    }
}

/* A receive of any source or tag has got this message, or none if there is no status. Locked. */
static void settle(struct half *half, const struct communicator *where, int communicator,
                   const MPI_Status *status)
{
    if (timeline) {
        wildcards_open--;
        wildcard_open(communicator, half->tag, -1);
        if (half->order / ORDER_STEP != (uint32_t)receives_begun * ORDER_STEP / ORDER_STEP)
            half->order |= MIXED;
    }
    if (!status)
        return;
    half->peer = world_rank(where, status->MPI_SOURCE);
    half->tag = status->MPI_TAG;
    if (timeline)
        half->sequence = next_message(true, communicator, half->peer, half->tag);
}

/* Whether a call is to be recorded. */
static inline bool call_begins(struct call *call, enum routine_number routine)
{
    if (!recording || mine.inside)
        return false;
    mine.inside = true;
    if (mine.generation != generation)
        take_place();
    *call = (struct call){.routine = &routines[routine], .half = {.peer = NOBODY}};
    call->half.nbytes = UNKNOWN_BYTES;
    return true;
}

static inline void on_communicator(struct call *call, MPI_Comm comm)
{
    call->where = known(comm);
    call->communicator = number_of(call->where);
}

static inline void on_window(struct call *call, MPI_Win window, int target)
{
    call->where = behind(&windows, KEY_OF(window));
    call->communicator = number_of(call->where);
    call->half.peer = world_rank(call->where, target);
}

static inline void on_file(struct call *call, MPI_File file)
{
    call->where = behind(&files, KEY_OF(file));
    call->communicator = number_of(call->where);
}

static inline int peers_of(const struct call *call)
{
    return call->where && call->where->peers > 0 ? call->where->peers : 1;
}

/* Each collective call takes the next number on its communicator. */
static inline void collective(struct call *call, MPI_Comm comm, int root)
{
    on_communicator(call, comm);
    call->half.peer = world_rank(call->where, root);
    if (call->where && !call->prepares)
        call->half.sequence = __atomic_add_fetch(&call->where->collectives, 1, __ATOMIC_RELAXED);
}

static inline void sends(struct call *call, MPI_Comm comm, int peer, int tag)
{
    on_communicator(call, comm);
    call->half.peer = world_rank(call->where, peer);
    call->half.tag = tag;
    if (!timeline || call->prepares)
        return;
    lock();
    call->half.sequence = next_message(false, call->communicator, call->half.peer, tag);
    unlock();
}

static inline void half_receives(struct call *call, struct half *half, int peer, int tag)
{
    half->peer = world_rank(call->where, peer);
    half->tag = tag == MPI_ANY_TAG ? -1 : tag;
    half->wildcard = peer == MPI_ANY_SOURCE || (tag == MPI_ANY_TAG && peer != MPI_PROC_NULL);
    if (!timeline || call->prepares)
        return;
    lock();
    post(half, call->communicator);
    unlock();
}

static inline void receives(struct call *call, MPI_Comm comm, int peer, int tag)
{
    on_communicator(call, comm);
    half_receives(call, &call->half, peer, tag);
    call->receives = true;
}

/* The receiving half of a call that has said what it sends. */
static inline void receives_too(struct call *call, int peer, int tag)
{
    call->second.nbytes = UNKNOWN_BYTES;
    half_receives(call, &call->second, peer, tag);
    call->arrives = true;
}

/* A status of our own where the program wants none and a wildcard makes one necessary. */
static inline void need_status(struct call *call, const struct half *half, MPI_Status **status,
                               MPI_Status *own)
{
    call->own_status = *status == MPI_STATUS_IGNORE;
    if (call->own_status && half->wildcard) {
        own->MPI_SOURCE = MPI_PROC_NULL;
        own->MPI_TAG = 0;
        *status = own;
    }
}

static int64_t size_of(MPI_Datatype type)
{
    MPI_Count size = 0;
    int integers, addresses, types, combiner = MPI_COMBINER_DUP;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS)
        return 0;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) { /* others may be freed, and their handles given anew */
        mine.named_type = KEY_OF(type);
        mine.named_size = size;
    }
    return size;
}

static inline int64_t bytes_of(int64_t count, MPI_Datatype type)
{
    if (!count)
        return 0;
    bool seen = mine.named_size && mine.named_type == KEY_OF(type);
    return count * (seen ? mine.named_size : size_of(type));
}

static int64_t bytes_received(const MPI_Status *status)
{
    MPI_Count count = 0;
    if (PMPI_Get_elements_x((MPI_Status *)status, MPI_BYTE, &count) != MPI_SUCCESS || count < 0)
        return UNKNOWN_BYTES;
    return count;
}

static void count_received(struct half *half, const MPI_Status *status)
{
    half->nbytes = bytes_received(status);
    half->order |= half->order ? COUNTED : 0;
}

/* The whole of counts for each rank, of int or MPI_Count. */
#define SUM(counts, ranks)                                                                         \
    __extension__({                                                                                \
        int64_t sum_ = 0;                                                                          \
        for (int i_ = 0; i_ < (ranks); i_++)                                                       \
            sum_ += (counts)[i_];                                                                  \
        sum_;                                                                                      \
    })
#define SUM_OF_TYPES(counts, types, ranks)                                                         \
    __extension__({                                                                                \
        int64_t sum_ = 0;                                                                          \
        for (int i_ = 0; i_ < (ranks); i_++)                                                       \
            sum_ += bytes_of((counts)[i_], (types)[i_]);                                           \
        sum_;                                                                                      \
    })

/* How many neighbours a rank sends to. */
static int neighbours(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, count = 0, others, rank, weighted;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &count);
        count *= 2;
    } else if (kind == MPI_GRAPH) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &count);
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &others, &count, &weighted);
    }
    return count;
}

static inline int64_t divided(int64_t whole, int parts)
{
    return parts > 0 ? whole / parts : whole;
}

/* A receive has come back: from whom, how much. */
static void half_received(struct call *call, struct half *half, int peer, const MPI_Status *status,
                          int64_t posted)
{
    bool told = status != MPI_STATUS_IGNORE;
    if (peer == MPI_PROC_NULL) {
        half->nbytes = 0;
        return;
    }
    if (half->wildcard && told) {
        lock();
        settle(half, call->where, call->communicator, status);
        unlock();
    }
    half->nbytes = posted;
    if (told && !call->own_status)
        count_received(half, status);
}

/* The number of a routine's name in this record. */
static inline int number_of_routine(struct routine *routine)
{
    if (!routine->number) {
        lock();
        routine->number = number_of_name(routine->name, strlen(routine->name));
        unlock();
    }
    return routine->number;
}

/* The number of the name of what a persistent request of this routine does when it is started. */
static inline int number_when_started(struct routine *routine)
{
    if (!routine->started) {
        char name[128];
        size_t length = strlen(routine->name) - strlen("_init");
        int whole = snprintf(name, sizeof name, "%.*s" STARTED, (int)length, routine->name);
        lock();
        routine->started = number_of_name(name, whole);
        unlock();
    }
    return routine->started;
}

/* Add a call to its cell, which may be the one of a call before. Locked. */
static struct cell *count_call(struct cell *cell, int number, int communicator, int peer,
                               int64_t nbytes, int64_t spent, int site)
{
    int bin = bin_of(nbytes);
    if (!cell || !is_cell_of(cell, number, communicator, peer, bin, site))
        cell = cell_of(number, communicator, peer, bin, site);
    if (!cell) {
        header->cells_lost++;
        return NULL;
    }
    cell->calls++;
    cell->nbytes += nbytes > 0 ? nbytes : 0;
    cell->ns += spent;
    if (spent < cell->least_ns)
        cell->least_ns = spent;
    if (spent > cell->greatest_ns)
        cell->greatest_ns = spent;
    return cell;
}

/* Whom this thread waits for, as `omb-py watch` reads it: nobody, then one more and one more. */

static inline void awaits_nobody(struct call *call)
{
    struct thread *place = mine.place;
    call->told = true;
    place->now_operation = place->now_communicator = place->now_collectives = place->now_peers = 0;
}

/* The ranks on the other side of an intercommunicator may have no records here. */
static inline void awaits(const struct communicator *where, const struct half *half)
{
    struct thread *place = mine.place;
    bool anyone = half->wildcard && half->peer == NOBODY && where && !where->inter;
    int peer = anyone ? ANYONE : half->peer;
    for (int64_t i = 0; i < place->now_peers; i++)
        if (place->now_peer[i] == peer)
            return;
    if (place->now_peers < PEERS)
        place->now_peer[place->now_peers++] = peer;
    else
        place->now_peer[PEERS - 1] = NOBODY;
}

static inline void probes(struct call *call, MPI_Comm comm, int source)
{
    on_communicator(call, comm);
    struct half half = {world_rank(call->where, source), .wildcard = source == MPI_ANY_SOURCE};
    awaits_nobody(call);
    awaits(call->where, &half);
}

/* Say where this thread is from now on, and read the clock. */
static inline void call_starts(struct call *call)
{
    struct thread *place = mine.place;
    int number = number_of_routine(call->routine);
    call->began = now();
    if (!call->told) {
        awaits_nobody(call);
        awaits(call->where, &call->half);
        if (call->arrives)
            awaits(call->where, &call->second);
    }
    if (call->communicator) {
        place->now_communicator = call->communicator;
        place->now_collectives = call->where ? call->where->collectives : 0;
    }
    place->now_began = call->began;
    __atomic_store_n(&place->now_name, number, __ATOMIC_RELEASE);
}

static inline void call_returns(struct call *call)
{
    call->ended = now();
}

static void write_call(const struct call *call)
{
    const struct half *half = &call->half;
    struct event event = {.kind = CALL,
                          .name = call->routine->number,
                          .communicator = call->communicator,
                          .peer = half->peer,
                          .tag = half->tag,
                          .order = half->order,
                          .began = call->began,
                          .ended = call->ended,
                          .nbytes = half->nbytes,
                          .request = call->request,
                          .sequence = half->sequence};
    write_event(&event);
    if (call->arrives && !call->request) {
        event.kind = ARRIVED;
        event.peer = call->second.peer;
        event.tag = call->second.tag;
        event.order = call->second.order;
        event.nbytes = call->second.nbytes;
        event.sequence = call->second.sequence;
        write_event(&event);
    }
}

static inline void call_ends(struct call *call)
{
    struct routine *routine = call->routine;
    struct header *seen = header;
    struct thread *place = mine.place;
    int64_t nbytes = call->half.nbytes, spent = call->ended - call->began;
    int peer = call->half.peer, communicator = call->communicator;
    if (call->apart) {
        nbytes = UNKNOWN_BYTES;
        peer = NOBODY;
        communicator = 0;
    }
    if (call->arrives && call->second.nbytes > 0)
        nbytes = call->second.nbytes + (nbytes > 0 ? nbytes : 0);
    int line = site();
    lock();
    if (recording) {
        routine->last =
            count_call(routine->last, routine->number, communicator, peer, nbytes, spent, line);
        if (timeline)
            write_call(call);
        place->calls++;
        place->ns += spent;
    }
    unlock();
    place->now_name = 0;
    place->now_began = call->ended;
    if (seen)
        seen->updated = call->ended;
    mine.inside = false;
}

#endif
