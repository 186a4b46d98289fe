/* Requests: what they stand for, from the call that begins an operation to the one that finds it
 * complete. A library may give the same handle to several operations that were complete at once: of
 * those the oldest is the first to be completed. Without a timeline only the latest is kept: waits
 * need no other, and a program may begin any number.
 */

#ifndef RECORDER_REQUESTS_C
#define RECORDER_REQUESTS_C

#include "recorder_calls.c"

struct operation {
    int next, last; /* of the same handle, as places in `operations`; `last` only of the first */
    struct routine *routine;
    int communicator;
    bool receives, persistent, active, collective;
    bool cancelled; /* the program wants it to be, which may come too late */
    bool followed;  /* the next one belongs to the same request */
    unsigned generation;
    struct half half;
    int64_t began, request;
    struct communicator *where, *coming; /* `coming` goes to `into` when it is there */
    MPI_Comm *into;
};

static struct table requests = {.most = 1 << 20}; /* from a handle to the place of the oldest */
static struct operation *operations;              /* from 1 */
static int operations_made, operations_room, operations_free;

/* The place of a new operation of a request; 0 without memory. Locked. */
static int keep_operation(uint64_t handle, struct operation operation)
{
    int place = operations_free;
    if (place) {
        operations_free = operations[place].next;
    } else {
        if (operations_made + 1 >= operations_room) {
            int room = operations_room ? 2 * operations_room : 256;
            struct operation *larger = realloc(operations, room * sizeof *larger);
            if (!larger)
                return 0;
            operations = larger;
            operations_room = room;
        }
        place = ++operations_made;
    }
    operation.next = 0;
    operation.last = place;
    if (operation.where)
        operation.where->references++;
    operations[place] = operation;
    int64_t *first = find(&requests, handle, 0);
    if (first) {
        operations[operations[*first].last].next = place;
        operations[*first].last = place;
    } else if (!add(&requests, handle, 0, place)) {
        release(operation.where);
        operations[place].next = operations_free;
        operations_free = place;
        return 0;
    }
    return place;
}

/* Take the oldest operation of a request out. Locked. */
static void drop_operation(uint64_t handle)
{
    int64_t *first = find(&requests, handle, 0);
    if (!first)
        return;
    int place = (int)*first, next = operations[place].next;
    if (next) {
        operations[next].last = operations[place].last;
        *first = next;
    } else {
        take_out(&requests, handle, 0);
    }
    release(operations[place].where);
    operations[place].next = operations_free;
    operations_free = place;
}

static struct operation *operation_of(uint64_t handle)
{
    int64_t *first = find(&requests, handle, 0);
    return first ? &operations[*first] : NULL;
}

/* A message that was not sent or received after all has no number: the next one takes it.
 * Locked. */
static void take_back(struct operation *operation)
{
    struct half *half = &operation->half;
    int64_t *count = half->sequence ? message_count(operation->receives, operation->communicator,
                                                    half->peer, half->tag)
                                    : NULL;
    if (count && *count == half->sequence + 1 && operation->generation == generation)
        --*count;
    half->sequence = 0;
}

/* What a request stood for is no more. Locked. */
static void forget_operations(uint64_t handle)
{
    struct operation *operation;
    for (bool more = true; more && (operation = operation_of(handle)) && !operation->coming;) {
        more = operation->followed;
        if (operation->cancelled && operation->active && operation->receives)
            take_back(operation);
        drop_operation(handle);
    }
}

static struct operation half_of(struct call *call, const struct half *half, bool receiving)
{
    return (struct operation){.routine = call->routine,
                              .communicator = call->communicator,
                              .receives = receiving,
                              .generation = generation,
                              .half = *half,
                              .began = call->began,
                              .where = call->where};
}

/* A non-blocking call has begun what its request stands for. */
static void begun(struct call *call, MPI_Request request)
{
    if (request == MPI_REQUEST_NULL)
        return;
    struct operation first = half_of(call, &call->half, call->receives);
    lock();
    if (!timeline)
        forget_operations(KEY_OF(request));
    first.request = call->request = ++requests_begun;
    first.active = true;
    first.followed = call->arrives;
    keep_operation(KEY_OF(request), first);
    if (call->arrives) {
        struct operation second = half_of(call, &call->second, true);
        second.active = true;
        second.request = ++requests_begun;
        keep_operation(KEY_OF(request), second);
    }
    unlock();
}

/* A persistent request has been made: nothing is sent before it is started. */
static void prepared(struct call *call, MPI_Request request, bool collective)
{
    if (request == MPI_REQUEST_NULL)
        return;
    number_of_routine(call->routine);
    struct operation made = half_of(call, &call->half, call->receives);
    made.persistent = true;
    made.collective = collective;
    lock();
    keep_operation(KEY_OF(request), made);
    unlock();
}

/* The communicator that MPI_Comm_idup makes is there when its request is complete. */
static void coming_communicator(MPI_Comm parent, MPI_Comm *into, MPI_Request request)
{
    struct communicator *made = described(parent);
    if (!made)
        return;
    made->key[0] = 0;
    lock();
    give_key(made);
    struct operation operation = {.coming = made, .into = into, .active = true};
    operation.half.peer = NOBODY;
    operation.half.nbytes = UNKNOWN_BYTES;
    if (!keep_operation(KEY_OF(request), operation))
        release(made);
    unlock();
}

/* A persistent operation begins anew. Locked. */
static void start_operation(struct operation *operation, int64_t began, int communicator)
{
    struct half *half = &operation->half;
    operation->began = began;
    operation->active = true;
    operation->cancelled = false;
    operation->communicator = communicator;
    operation->generation = generation;
    operation->request = ++requests_begun;
    if (operation->collective)
        half->sequence = operation->where ? ++operation->where->collectives : 0;
    else if (timeline && operation->receives)
        post(half, communicator);
    else if (timeline)
        half->sequence = next_message(false, communicator, half->peer, half->tag);
}

static bool was_cancelled(const struct operation *operation, const MPI_Status *status)
{
    int cancelled = 0;
    return operation->cancelled && status && !operation->collective &&
           PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled;
}

static void write_done(struct operation *operation, const MPI_Status *status, int64_t ended)
{
    if (was_cancelled(operation, status)) {
        take_back(operation);
        status = NULL;
    }
    struct half half = operation->half;
    if (operation->receives && half.wildcard)
        settle(&half, operation->where, operation->communicator, status);
    if (operation->receives && status && half.peer != NOBODY)
        count_received(&half, status);
    write_event(&(struct event){.kind = DONE,
                                .name = operation->routine->number,
                                .communicator = operation->communicator,
                                .peer = half.peer,
                                .tag = half.tag,
                                .order = half.order,
                                .began = operation->began,
                                .ended = ended,
                                .nbytes = half.nbytes,
                                .request = operation->request,
                                .sequence = half.sequence});
}

/* A request is complete: its operations leave, persistent ones until they are started again. */
static void complete(uint64_t handle, const MPI_Status *status, int64_t ended)
{
    lock();
    struct operation *operation = operation_of(handle);
    for (bool more = true; operation; operation = more ? operation_of(handle) : NULL) {
        more = operation->followed;
        if (operation->coming) {
            operation->coming->comm = *operation->into;
            keep(operation->coming);
        } else if (recording && timeline && operation->active &&
                   operation->generation == generation) {
            write_done(operation, status, ended);
        }
        operation->active = false;
        if (operation->persistent)
            break;
        drop_operation(handle);
    }
    unlock();
}

static void forget_request(uint64_t handle)
{
    lock();
    forget_operations(handle);
    unlock();
}

/* What a call waits for: of requests of one kind the routine and communicator are known. */
static void awaits_requests(struct call *call, int count, const MPI_Request *array)
{
    const struct half nobody = {.peer = NOBODY};
    struct thread *place = mine.place;
    awaits_nobody(call);
    lock();
    for (int i = 0; i < count; i++) {
        struct operation *one = operation_of(KEY_OF(array[i]));
        bool known = one && one->routine && one->generation == generation;
        if (array[i] == MPI_REQUEST_NULL || (known && !one->active))
            continue;
        int name = !known ? 0 : one->persistent ? one->routine->started : one->routine->number;
        int communicator = known ? one->communicator : 0;
        int64_t sequence = known ? one->half.sequence : 0;
        bool first = !place->now_peers, same = name == place->now_operation;
        same = first || (same && communicator == place->now_communicator);
        place->now_operation = same ? name : 0;
        place->now_communicator = same ? communicator : 0;
        if (first || sequence < place->now_collectives)
            place->now_collectives = sequence;
        awaits(known ? one->where : NULL, known ? &one->half : &nobody);
        if (known && one->followed && one->next)
            awaits(one->where, &operations[one->next].half);
    }
    unlock();
}

#endif
