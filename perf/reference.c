/* What native OMB does, in plain C: the yardstick of binding native and of the suite.
 *
 * As a program: reference latency BYTES ITERATIONS prints the mean and the median in microseconds.
 * As a library: perf/c_loops.py calls the loops in turn with those of omb-py, in one process.
 * Every loop stores the seconds of each iteration; buffers belong to the caller. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DATA = 100, ANSWER = 101, LONGEST_WINDOW = 1024 };

/* The clock that omb-py reads, so that only the loops differ: MPI_Wtime costs Open MPI 5 ns more. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

void latency(MPI_Comm *comm, void *outgoing, void *incoming, int bytes, int iterations,
             double *seconds)
{
    MPI_Status status;
    int rank;
    MPI_Comm_rank(*comm, &rank);
    for (int i = 0; i < iterations; i++) {
        double start = now();
        if (rank == 0) {
            MPI_Send(outgoing, bytes, MPI_CHAR, 1, DATA, *comm);
            MPI_Recv(incoming, bytes, MPI_CHAR, 1, DATA, *comm, &status);
        } else {
            MPI_Recv(incoming, bytes, MPI_CHAR, 0, DATA, *comm, &status);
            MPI_Send(outgoing, bytes, MPI_CHAR, 0, DATA, *comm);
        }
        seconds[i] = now() - start;
    }
}

void bandwidth(MPI_Comm *comm, void *message, void *answer, int bytes, int window, int iterations,
               double *seconds)
{
    MPI_Request requests[LONGEST_WINDOW];
    MPI_Status statuses[LONGEST_WINDOW];
    int rank;
    MPI_Comm_rank(*comm, &rank);
    for (int i = 0; i < iterations; i++) {
        double start = now();
        for (int j = 0; j < window; j++)
            if (rank == 0)
                MPI_Isend(message, bytes, MPI_CHAR, 1, DATA, *comm, &requests[j]);
            else
                MPI_Irecv(message, bytes, MPI_CHAR, 0, DATA, *comm, &requests[j]);
        MPI_Waitall(window, requests, statuses);
        if (rank == 0)
            MPI_Recv(answer, 1, MPI_CHAR, 1, ANSWER, *comm, statuses);
        else
            MPI_Send(answer, 1, MPI_CHAR, 0, ANSWER, *comm);
        seconds[i] = now() - start;
    }
}

void allreduce(MPI_Comm *comm, void *send, void *recv, int count, int iterations, double *seconds)
{
    for (int i = 0; i < iterations; i++) {
        double start = now();
        MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, *comm);
        seconds[i] = now() - start;
        MPI_Barrier(*comm);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int bytes = atoi(argv[argc - 2]), iterations = atoi(argv[argc - 1]), warmup = 100, rank;
    void *outgoing, *incoming;
    double *seconds = malloc((warmup + iterations) * sizeof(double)), sum = 0;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    if (posix_memalign(&outgoing, 4096, bytes + 1) || posix_memalign(&incoming, 4096, bytes + 1))
        MPI_Abort(comm, 1);
    memset(outgoing, 'a', bytes);
    memset(incoming, 'b', bytes);
    MPI_Barrier(comm);
    latency(&comm, outgoing, incoming, bytes, warmup + iterations, seconds);
    if (rank == 0) {
        for (int i = warmup; i < warmup + iterations; i++) sum += seconds[i];
        qsort(seconds + warmup, iterations, sizeof(double), ascending);
        printf("%.4f %.4f\n", sum / iterations / 2e-6, seconds[warmup + iterations / 2] / 2e-6);
    }
    MPI_Finalize();
    return 0;
}
