/* A rank's record, written by its calls of MPI: the mapped file, names, cells, events.
 *
 * generated.h has constants and structures of the file (omb_py.tracing.records), and the routines that
 * are recorded, ROUTINES of them. All times are ns of CLOCK_MONOTONIC.
 * Whatever is in the file is there when the process is killed. Several threads may call: tables and
 * the file are changed under `lock` alone.
 */

#ifndef RECORDER_C
#define RECORDER_C

#include "generated.h"

/* A table from two numbers to a third one, which is not 0; open addressing with linear probing. */

struct entry {
    uint64_t a, b;
    int64_t value;
};

struct table {
    struct entry *entries;
    size_t capacity, used, most; /* most: entries it may grow to */
};

static inline uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b * 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
    x ^= x >> 29;
    x *= 0x94D049BB133111EBu;
    return x ^ x >> 32;
}

static int64_t *find(const struct table *table, uint64_t a, uint64_t b)
{
    if (!table->used)
        return NULL;
    for (size_t i = mixed(a, b);; i++) {
        struct entry *entry = &table->entries[i & (table->capacity - 1)];
        if (!entry->value)
            return NULL;
        if (entry->a == a && entry->b == b)
            return &entry->value;
    }
}

/* A pointer that stands in a table, NULL without one. */
static void *pointer_in(const struct table *table, uint64_t handle)
{
    int64_t *found = find(table, handle, 0);
    return found ? (void *)(intptr_t)*found : NULL;
}

static void put(struct table *table, uint64_t a, uint64_t b, int64_t value)
{
    size_t i = mixed(a, b);
    while (table->entries[i & (table->capacity - 1)].value)
        i++;
    table->entries[i & (table->capacity - 1)] = (struct entry){a, b, value};
    table->used++;
}

/* False where there is no room. */
static bool add(struct table *table, uint64_t a, uint64_t b, int64_t value)
{
    int64_t *found = find(table, a, b);
    if (found) {
        *found = value;
        return true;
    }
    if (table->used >= table->most)
        return false;
    if (2 * (table->used + 1) > table->capacity) {
        struct table larger = {.capacity = table->capacity ? 2 * table->capacity : 64};
        larger.most = table->most;
        larger.entries = calloc(larger.capacity, sizeof *larger.entries);
        if (!larger.entries)
            return false;
        for (size_t i = 0; i < table->capacity; i++) {
            struct entry *entry = &table->entries[i];
            if (entry->value)
                put(&larger, entry->a, entry->b, entry->value);
        }
        free(table->entries);
        *table = larger;
    }
    put(table, a, b, value);
    return true;
}

static void take_out(struct table *table, uint64_t a, uint64_t b)
{
    int64_t *found = find(table, a, b);
    if (!found)
        return;
    size_t mask = table->capacity - 1;
    size_t hole = (size_t)((char *)found - (char *)table->entries) / sizeof *table->entries;
    table->entries[hole].value = 0;
    table->used--;
    /* entries behind the hole go to it unless they would then be found no more */
    for (size_t i = (hole + 1) & mask; table->entries[i].value; i = (i + 1) & mask) {
        size_t home = mixed(table->entries[i].a, table->entries[i].b) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            table->entries[hole] = table->entries[i];
            table->entries[i].value = 0;
            hole = i;
        }
    }
}

static void clear(struct table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->capacity = table->used = 0;
}

/* The record. */

static struct header *header; /* NULL: there is none */
static struct cell *cells;
static struct event *events;
static struct thread *threads;
static char *names;
static unsigned generation; /* counts records: numbers of names are those of one record */

static struct table numbers = {.most = 1 << 17}; /* of names, by their hash */
static struct table places = {.most = 1 << 14};  /* of cells, from 1 */
static struct table lines_of_code = {.most = 1 << 16}; /* of names, by code and place */
static int64_t lines;

static bool started, finished; /* MPI */
static bool paused, stopped;   /* by omb-py, by MPI_Pcontrol(0) */
static bool recording, timeline;

static __thread struct {
    bool inside; /* a recorded call: what MPI calls meanwhile is a part of it */
    unsigned generation;
    struct thread *place; /* in the record of that generation */
    unsigned epoch;
    uint64_t handle;
    struct communicator *communicator; /* of handle, known in epoch */
    uint64_t named_type;
    int64_t named_size;
} mine;

static char locked;

static inline void lock(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static inline void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static inline int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static uint64_t fnv(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * FNV_PRIME;
    return hash;
}

/* The number of a name, which is written when it is new; 0 when there is no room. Locked. */
static int number_of_name(const char *text, size_t length)
{
    if (!header || !length)
        return 0;
    uint64_t hash = fnv(FNV_START, text, length), other = fnv(~hash, text, length);
    int64_t *known = find(&numbers, hash, other);
    if (known)
        return (int)*known;
    int64_t used = header->names_used;
    bool fits = used + 1 + (int64_t)length <= header->names_capacity;
    if (!fits || !add(&numbers, hash, other, lines)) {
        header->names_lost++;
        return 0;
    }
    names[used] = '\n';
    memcpy(names + used + 1, text, length);
    __atomic_store_n(&header->names_used, used + 1 + (int64_t)length, __ATOMIC_RELEASE);
    return (int)lines++;
}

/* As layout.size_bin. */
static inline int bin_of(int64_t nbytes)
{
    if (nbytes <= 0)
        return nbytes == 0 ? 0 : -1;
    if (nbytes <= BIN_1_BYTES)
        return 1;
    return 63 - __builtin_clzll((unsigned long long)(nbytes - 1));
}

static inline bool is_cell_of(const struct cell *cell, int routine, int comm, int peer, int bin,
                              int site)
{
    return cell->routine == routine && cell->communicator == comm && cell->peer == peer &&
           cell->bin == bin && cell->site == site;
}

/* The cell of calls that are alike, NULL when there is no room. Locked. */
static struct cell *cell_of(int routine, int communicator, int peer, int bin, int site)
{
    uint64_t a = (uint64_t)(uint32_t)routine << 32 | (uint32_t)communicator;
    uint64_t b = (uint64_t)(uint32_t)peer << 32 | (uint32_t)site << 8 | (uint8_t)bin;
    int64_t *place = find(&places, a, b);
    if (place)
        return &cells[*place - 1];
    int64_t used = header->cells_used;
    if (used >= header->cells_capacity || !add(&places, a, b, used + 1))
        return NULL;
    struct cell *cell = &cells[used];
    *cell = (struct cell){routine, communicator, peer, bin, site, .least_ns = INT64_MAX};
    __atomic_store_n(&header->cells_used, used + 1, __ATOMIC_RELEASE);
    return cell;
}

/* Write an event over the oldest. Locked. */
static void write_event(const struct event *event)
{
    int64_t written = header->events_written;
    events[written % header->events_capacity] = *event;
    __atomic_store_n(&header->events_written, written + 1, __ATOMIC_RELEASE);
}

/* A thread that has ended leaves its place to another one. */
static pthread_key_t at_thread_end;

static void leave_place(void *place)
{
    lock();
    if (header && !paused && mine.generation == generation)
        ((struct thread *)place)->number *= -1;
    unlock();
}

static void take_place(void)
{
    static __thread struct thread nowhere; /* several threads would write behind its peers */
    lock();
    int64_t used = header ? header->threads_used : 0, i = 0;
    while (i < used && threads[i].number >= 0)
        i++;
    bool room = header && i < header->threads_capacity;
    mine.generation = generation;
    mine.place = room ? &threads[i] : &nowhere;
    mine.place->threads++;
    mine.place->number = syscall(SYS_gettid);
    if (header) {
        header->threads_lost += !room;
        __atomic_store_n(&header->threads_used, used + (room && i == used), __ATOMIC_RELEASE);
    }
    unlock();
    pthread_setspecific(at_thread_end, mine.place);
}

static void set_recording(void)
{
    recording = header && started && !finished && !paused && !stopped;
}

static void forget_record(void)
{
    header = NULL; /* and stays mapped: another thread may be about to write there */
    set_recording();
    timeline = false;
    clear(&numbers);
    clear(&places);
    clear(&lines_of_code);
}

/* What Python calls. */

/* Go on in the record of this path; 0, or the number of an error. */
int omb_py_open(const char *path)
{
    struct stat status;
    int handle = open(path, O_RDWR);
    if (handle < 0)
        return errno;
    void *memory = MAP_FAILED;
    if (fstat(handle, &status) == 0)
        memory = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    int error = memory == MAP_FAILED ? errno : 0;
    close(handle);
    if (error)
        return error;
    lock();
    forget_record();
    struct header *new = memory;
    cells = (struct cell *)((char *)memory + new->cells_at);
    events = (struct event *)((char *)memory + new->events_at);
    threads = (struct thread *)((char *)memory + new->threads_at);
    names = (char *)memory + new->names_at;
    lines = 1;
    if (!generation++) {
        pthread_key_create(&at_thread_end, leave_place);
        pthread_atfork(lock, unlock, unlock); /* a child has no thread that would unlock */
    }
    for (int i = 0; i < ROUTINES; i++) {
        routines[i].number = routines[i].started = 0;
        routines[i].last = NULL;
    }
    timeline = new->events_capacity > 0;
    header = new;
    set_recording();
    unlock();
    return 0;
}

void omb_py_close(void)
{
    lock();
    forget_record();
    unlock();
}

void omb_py_pause(int yes)
{
    lock();
    paused = yes;
    set_recording();
    unlock();
}

/* Whether MPI was started through this library: else nobody calls it. */
int omb_py_started(void)
{
    return started;
}

int omb_py_name(const char *text, size_t length)
{
    lock();
    int number = number_of_name(text, length);
    unlock();
    return number;
}

/* Say that this thread is in a routine that nobody records, and waits there for all ranks. */
void omb_py_enter(int number)
{
    if (mine.generation != generation)
        take_place();
    struct thread *place = mine.place;
    place->now_operation = place->now_communicator = place->now_collectives = place->now_peers = 0;
    place->now_began = now();
    __atomic_store_n(&place->now_name, number, __ATOMIC_RELEASE);
}

void omb_py_event(const struct event *event)
{
    lock();
    if (recording && timeline)
        write_event(event);
    unlock();
}

#endif
