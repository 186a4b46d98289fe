/* Wrappers written by hand: the start and the end of MPI, MPI_Pcontrol, completions of requests,
 * starts of persistent ones, and what frees objects. All others are generated, and stand behind
 * this text.
 */

#include "recorder_requests.c"

static void has_started(void)
{
    lock();
    started = true;
    set_recording();
    unlock();
}

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        has_started();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        has_started();
    return result;
}

int MPI_Finalize(void)
{
    lock();
    finished = true;
    set_recording();
    unlock();
    if (world_group != MPI_GROUP_NULL)
        PMPI_Group_free(&world_group);
    return PMPI_Finalize();
}

static int64_t stopped_at;

/* The time from MPI_Pcontrol(0) to MPI_Pcontrol(1) is one call, and the next stop may begin. Locked. */
static void count_stop(int line)
{
    struct call stop = {.routine = &routines[ROUTINE_Pcontrol], .half.peer = NOBODY};
    stop.half.nbytes = UNKNOWN_BYTES;
    stop.began = stopped_at;
    stop.ended = stopped_at = now();
    count_call(NULL, stop.routine->number, 0, NOBODY, UNKNOWN_BYTES, stop.ended - stop.began,
               line);
    if (timeline)
        write_call(&stop);
}

int MPI_Pcontrol(const int level, ...)
{
    int line = recording || stopped ? site() : 0;
    number_of_routine(&routines[ROUTINE_Pcontrol]);
    lock();
    if (stopped && header && started && !finished && level)
        count_stop(line);
    else if (!stopped)
        stopped_at = now();
    stopped = level == 0;
    set_recording();
    unlock();
    return PMPI_Pcontrol(level);
}

/* A wrapper: `Before` the call, `Starts` while it is recorded, just before MPI's own, and `After` it,
 * with its `result`. */
#define WRAPPER(Routine, Parameters, Arguments, Before, Starts, After)                             \
    int MPI_##Routine Parameters                                                                   \
    {                                                                                              \
        struct call call;                                                                          \
        bool recorded = call_begins(&call, ROUTINE_##Routine);                                     \
        Before;                                                                                    \
        if (recorded) {                                                                            \
            call_starts(&call);                                                                    \
            Starts;                                                                                \
        }                                                                                          \
        int result = PMPI_##Routine Arguments;                                                     \
        if (recorded)                                                                              \
            call_returns(&call);                                                                   \
        After;                                                                                     \
        if (recorded)                                                                              \
            call_ends(&call);                                                                      \
        return result;                                                                             \
    }

#define NOTHING (void)0

/* What frees objects. */

#define FREEING(Routine, Type, Frees, Notes)                                                       \
    WRAPPER(                                                                                       \
        Routine, (Type * object), (object), Type old = *object;                                    \
        if (recorded)                                                                              \
            Notes,                                                                                 \
        NOTHING,                                                                                   \
        if (result == MPI_SUCCESS)                                                                 \
            Frees)

/* A communicator that did nothing else needs no name for its end. */
static void on_named_communicator(struct call *call, MPI_Comm comm)
{
    struct communicator *where = known(comm);
    if (where && where->generation == generation)
        call->communicator = where->number;
}

FREEING(Comm_free, MPI_Comm, forget_communicator(KEY_OF(old)), on_named_communicator(&call, old))
FREEING(Comm_disconnect, MPI_Comm, forget_communicator(KEY_OF(old)),
        on_named_communicator(&call, old))
FREEING(Win_free, MPI_Win, forget_object(&windows, KEY_OF(old)), on_window(&call, old, NOBODY))
FREEING(File_close, MPI_File, forget_object(&files, KEY_OF(old)), on_file(&call, old))
FREEING(Request_free, MPI_Request, forget_request(KEY_OF(old)), NOTHING)

int MPI_Cancel(MPI_Request *request)
{
    lock();
    struct operation *operation = operation_of(KEY_OF(*request));
    if (operation)
        operation->cancelled = true;
    unlock();
    return PMPI_Cancel(request);
}

static int64_t ended_at(bool recorded, const struct call *call)
{
    return recorded ? call->ended : now();
}

/* Completions. While no operation is known nothing is looked at. */

#define WATCHING_ONE                                                                               \
    MPI_Status own;                                                                                \
    bool watched = requests.used > 0;                                                              \
    uint64_t handle = KEY_OF(*request);                                                            \
    if (watched && timeline && status == MPI_STATUS_IGNORE)                                        \
        status = &own;                                                                             \
    if (recorded)                                                                                  \
    awaits_requests(&call, 1, request)

WRAPPER(
    Wait, (MPI_Request * request, MPI_Status *status), (request, status), WATCHING_ONE, NOTHING,
    if (watched)
        complete(handle, result == MPI_SUCCESS ? status : NULL, ended_at(recorded, &call)))

WRAPPER(
    Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status),
    WATCHING_ONE, NOTHING,
    if (watched && result == MPI_SUCCESS && *flag)
        complete(handle, status, ended_at(recorded, &call)))

enum { FEW = 32 };

/* The handles of several requests, which MPI takes away when they are complete. */
struct watch {
    bool on;
    uint64_t *handles, few[FEW];
    MPI_Status *own, some[FEW]; /* statuses where the program wants none */
};

static void watch_begins(struct watch *watch, int count, const MPI_Request *handles,
                         MPI_Status **statuses)
{
    watch->on = requests.used > 0 && count > 0;
    watch->handles = watch->few;
    watch->own = watch->some;
    if (!watch->on)
        return;
    if (count > FEW) {
        watch->handles = malloc(count * sizeof *watch->handles);
        watch->own = malloc(count * sizeof *watch->own);
    }
    watch->on = watch->handles && watch->own;
    bool needed = false;
    lock();
    for (int i = 0; watch->on && i < count; i++) {
        watch->handles[i] = KEY_OF(handles[i]);
        struct operation *operation = timeline ? operation_of(watch->handles[i]) : NULL;
        needed |= operation && (operation->half.wildcard || operation->cancelled);
    }
    unlock();
    /* with statuses, errors are told in another way: no more of them than necessary */
    if (needed && statuses && *statuses == MPI_STATUSES_IGNORE)
        *statuses = watch->own;
}

static const MPI_Status *status_of(const MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[i];
}

static void watch_ends(struct watch *watch)
{
    if (watch->handles != watch->few)
        free(watch->handles);
    if (watch->own != watch->some)
        free(watch->own);
}

#define WATCHING(Statuses)                                                                         \
    struct watch watch;                                                                            \
    watch_begins(&watch, count, array, Statuses);                                                  \
    if (recorded)                                                                                  \
    awaits_requests(&call, count, array)

WRAPPER(
    Waitall, (int count, MPI_Request array[], MPI_Status statuses[]), (count, array, statuses),
    WATCHING(&statuses), NOTHING,
    for (int i = 0; watch.on && i < count; i++)
        if (result == MPI_SUCCESS || array[i] == MPI_REQUEST_NULL)
            complete(watch.handles[i], result == MPI_SUCCESS ? status_of(statuses, i) : NULL,
                     ended_at(recorded, &call));
    watch_ends(&watch))

WRAPPER(
    Testall, (int count, MPI_Request array[], int *flag, MPI_Status statuses[]),
    (count, array, flag, statuses), WATCHING(&statuses), NOTHING,
    for (int i = 0; watch.on && result == MPI_SUCCESS && *flag && i < count; i++)
        complete(watch.handles[i], status_of(statuses, i), ended_at(recorded, &call));
    watch_ends(&watch))

#define COMPLETING_ANY(Routine, Parameters, Arguments, Found)                                      \
    WRAPPER(                                                                                       \
        Routine, Parameters, Arguments, WATCHING(NULL);                                            \
        if (watch.on && timeline && status == MPI_STATUS_IGNORE)                                   \
            status = watch.own,                                                                    \
        NOTHING,                                                                                   \
        if (watch.on && result == MPI_SUCCESS && Found && *index >= 0 && *index < count)           \
            complete(watch.handles[*index], status, ended_at(recorded, &call));                    \
        watch_ends(&watch))

COMPLETING_ANY(Waitany, (int count, MPI_Request array[], int *index, MPI_Status *status),
               (count, array, index, status), true)
COMPLETING_ANY(Testany, (int count, MPI_Request array[], int *index, int *flag, MPI_Status *status),
               (count, array, index, flag, status), *flag)

#define COMPLETING_SOME(Routine)                                                                   \
    WRAPPER(                                                                                       \
        Routine,                                                                                   \
        (int count, MPI_Request array[], int *found, int indices[], MPI_Status statuses[]),        \
        (count, array, found, indices, statuses), WATCHING(&statuses), NOTHING,                    \
        if (watch.on && result == MPI_SUCCESS && *found != MPI_UNDEFINED)                          \
            for (int i = 0; i < *found; i++)                                                       \
                complete(watch.handles[indices[i]], status_of(statuses, i),                        \
                         ended_at(recorded, &call));                                               \
        watch_ends(&watch))

COMPLETING_SOME(Waitsome)
COMPLETING_SOME(Testsome)

/* Starts of persistent requests: each is an operation of its own. */

static void start_requests(struct call *call, int count, const MPI_Request *array)
{
    call->apart = true;
    int line = site();
    for (int i = 0; i < count; i++) {
        lock();
        struct operation *operation = operation_of(KEY_OF(array[i]));
        bool known_here = operation && operation->persistent;
        struct communicator *where = known_here ? operation->where : NULL;
        struct routine *routine = known_here ? operation->routine : NULL;
        unlock();
        if (!known_here)
            continue;
        int communicator = number_of(where), number = number_when_started(routine);
        number_of_routine(routine);
        lock();
        operation = operation_of(KEY_OF(array[i]));
        if (operation) {
            start_operation(operation, call->began, communicator);
            struct half *half = &operation->half;
            if (recording)
                count_call(NULL, number, communicator, half->peer, half->nbytes, 0, line);
            if (!call->request)
                call->request = operation->request;
            if (count == 1) {
                call->communicator = communicator;
                call->half = operation->half;
                call->receives = operation->receives;
            }
        }
        unlock();
    }
}

WRAPPER(Start, (MPI_Request * request), (request), NOTHING, start_requests(&call, 1, request),
        NOTHING)
WRAPPER(Startall, (int count, MPI_Request array[]), (count, array), NOTHING,
        start_requests(&call, count, array), NOTHING)

/* Messages that a probe has matched: what the probe knew of them. */

struct matched {
    int communicator;
    unsigned generation;
    struct half half;
};

static struct table messages = {.most = 1 << 20};

static void match(struct call *call, MPI_Message message, const MPI_Status *status)
{
    if (message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC)
        return;
    struct matched *matched = calloc(1, sizeof *matched);
    if (!matched)
        return;
    struct half *half = &matched->half;
    matched->communicator = call->communicator;
    matched->generation = generation;
    half->peer = world_rank(call->where, status->MPI_SOURCE);
    half->tag = status->MPI_TAG;
    lock();
    if (timeline)
        post(half, call->communicator);
    free(pointer_in(&messages, KEY_OF(message)));
    if (!add(&messages, KEY_OF(message), 0, (intptr_t)matched))
        free(matched);
    unlock();
}

/* The receive of a matched message takes what is known of it. */
static void receives_matched(struct call *call, MPI_Message message)
{
    call->receives = true;
    lock();
    struct matched *matched = pointer_in(&messages, KEY_OF(message));
    take_out(&messages, KEY_OF(message), 0);
    unlock();
    if (!matched)
        return;
    if (matched->generation == generation) {
        call->communicator = matched->communicator;
        call->half = matched->half;
        call->half.nbytes = UNKNOWN_BYTES;
    }
    free(matched);
}
