/* The latency of native MPI by native OMB's definition: usage ping_pong BYTES ITERATIONS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int bytes = atoi(argv[argc - 2]), iterations = atoi(argv[argc - 1]), warmup = 100, rank;
    void *outgoing, *incoming;
    double *samples = malloc(iterations * sizeof(double)), sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (posix_memalign(&outgoing, 4096, bytes + 1) || posix_memalign(&incoming, 4096, bytes + 1))
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(outgoing, 'a', bytes);
    memset(incoming, 'b', bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = -warmup; i < iterations; i++) {
        double start = MPI_Wtime();
        if (rank == 0) MPI_Send(outgoing, bytes, MPI_CHAR, 1, 100, MPI_COMM_WORLD);
        MPI_Recv(incoming, bytes, MPI_CHAR, 1 - rank, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(outgoing, bytes, MPI_CHAR, 0, 100, MPI_COMM_WORLD);
        if (i >= 0) sum += samples[i] = MPI_Wtime() - start;
    }
    if (rank == 0) {
        qsort(samples, iterations, sizeof(double), ascending);
        printf("%.4f %.4f\n", sum / iterations / 2e-6, samples[iterations / 2] / 2e-6);
    }
    MPI_Finalize();
    return 0;
}
