/* The timing loop of binding native.
 *
 * A program is an array of rows, each of them one C call: the function's address and its arguments.
 * The loop sees addresses and integers alone, so that one file serves every MPI library.
 *
 * All arguments are 64-bit words. The System V psABI of x86-64 (3.2.3) and AAPCS64 (6.8.2) give an
 * int, a long and a pointer 64 bits of a register or of the stack each. A function reads as many of
 * them as its parameter has.
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdint.h>
#include <time.h>

typedef int64_t word;

struct row {
    word count; /* arguments */
    word function;
    word arguments[12];
    word times;  /* the call is made so often */
    word moved;  /* the index of an argument that changes from call to call */
    word stride; /* how much is added to it each time */
};

/* What is known of a common start, in seconds: when it is, whether this rank announces it, how long
 * after the announcement; how this rank's clock follows that of rank 0; below which wait it spins. */
struct start {
    double time, announces, slack, offset, drift, reference, spin;
};

/* The parts of an iteration; the last ends with the barrier, if there is one. */
enum { BEFORE, ANNOUNCEMENT, TIMED, AFTER, PARTS };

static word nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#define CALL(...) return ((int (*)(__VA_ARGS__))row->function)
static int call(const struct row *row)
{
    const word *a = row->arguments;
    switch (row->count) {
    case 1: CALL(word)(a[0]);
    case 2: CALL(word, word)(a[0], a[1]);
    case 3: CALL(word, word, word)(a[0], a[1], a[2]);
    case 4: CALL(word, word, word, word)(a[0], a[1], a[2], a[3]);
    case 5: CALL(word, word, word, word, word)(a[0], a[1], a[2], a[3], a[4]);
    case 6: CALL(word, word, word, word, word, word)(a[0], a[1], a[2], a[3], a[4], a[5]);
    case 7: CALL(word, word, word, word, word, word, word)(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    case 8: CALL(word, word, word, word, word, word, word, word)
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    case 9: CALL(word, word, word, word, word, word, word, word, word)
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
    case 10: CALL(word, word, word, word, word, word, word, word, word, word)
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
    case 11: CALL(word, word, word, word, word, word, word, word, word, word, word)
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    default: CALL(word, word, word, word, word, word, word, word, word, word, word, word)
        (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    }
}

static int call_all(struct row *row)
{
    int error = call(row);
    if (row->times == 1)
        return error;
    word *moved = &row->arguments[row->moved], first = *moved;
    for (word time = 1; time < row->times && !error; time++) {
        *moved += row->stride;
        error = call(row);
    }
    *moved = first;
    return error;
}

/* Wait until this rank's clock says that it is time; by how many seconds it was late. */
static double wait_for(const struct start *start)
{
    double time = start->time - start->offset, now;
    time -= start->drift * (time - start->reference);
    while ((now = nanoseconds() * 1e-9) < time)
        if (time - now > start->spin)
            sched_yield();
    return now - time;
}

/* Run iterations and store the seconds of each; 0, or the number of the row that failed times 2**32
 * plus its error. bounds has how many iterations differ, then the first row of each part of each of
 * them, and the end of the last. */
word omb_py_run(struct row *rows, const word *bounds, word first, word iterations,
                struct start *start, double *lateness, double *seconds)
{
    for (word index = 0; index < iterations; index++) {
        const word *ends = bounds + 1 + PARTS * ((first + index) % bounds[0]);
        word begin = 0;
        for (int part = BEFORE; part < PARTS; part++) {
            if (part == ANNOUNCEMENT && ends[part] < ends[part + 1] && start->announces > 0.0)
                start->time = nanoseconds() * 1e-9 + start->slack;
            if (part == TIMED) {
                if (ends[ANNOUNCEMENT] < ends[TIMED])
                    lateness[index] = wait_for(start);
                begin = nanoseconds();
            }
            for (word row = ends[part]; row < ends[part + 1]; row++) {
                int error = call_all(&rows[row]);
                if (error)
                    return row * (INT64_C(1) << 32) + error;
            }
            if (part == TIMED)
                seconds[index] = (nanoseconds() - begin) * 1e-9;
        }
    }
    return 0;
}

/* Multiply and add so many times, each time with what came of the last; always 0. */
int omb_py_compute(word times)
{
    double value = times;
    while (times-- > 0)
        value = value * 0.75 + 0.3;
    return value < 0.0;
}

/* Add the nanoseconds since the last lap to those of this kind; always 0. state has the time of the
 * last lap, then the sum of each kind. */
int omb_py_lap(word *state, word kind)
{
    word now = nanoseconds();
    state[1 + kind] += now - state[0];
    state[0] = now;
    return 0;
}

/* Make a position 0 again; always 0. */
int omb_py_reset(word *position)
{
    *position = 0;
    return 0;
}
