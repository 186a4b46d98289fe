/* A collective as native OMB runs it: collective NAME SMALLEST LARGEST; starts, measures, ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ranks;
static char *send, *receive;

static void call(const char *name, int count)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    if (!strcmp(name, "barrier"))
        MPI_Barrier(comm);
    else if (!strcmp(name, "bcast"))
        MPI_Bcast(send, count, MPI_CHAR, 0, comm);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(send, receive, count / 4, MPI_INT, MPI_SUM, 0, comm);
    else if (!strcmp(name, "gather"))
        MPI_Gather(send, count, MPI_CHAR, receive, count, MPI_CHAR, 0, comm);
    else if (!strcmp(name, "scatter"))
        MPI_Scatter(send, count, MPI_CHAR, receive, count, MPI_CHAR, 0, comm);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(send, count, MPI_CHAR, receive, count, MPI_CHAR, comm);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(send, count, MPI_CHAR, receive, count, MPI_CHAR, comm);
    else
        MPI_Allreduce(send, receive, count / 4, MPI_INT, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    int smallest = atoi(argv[2]), largest = atoi(argv[3]), rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    send = calloc(ranks, largest + 8);
    receive = calloc(ranks, largest + 8);
    for (int count = smallest; count <= largest; count *= 2) {
        int iterations = count > 8192 ? 100 : 1000, warmup = count > 8192 ? 10 : 200;
        double total = 0;
        for (int i = 0; i < iterations + warmup; i++) {
            double begin = MPI_Wtime();
            call(argv[1], count);
            if (i >= warmup)
                total += MPI_Wtime() - begin;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank == 0)
            printf("%-10d%18.2f\n", count, total / iterations * 1e6);
        if (!strcmp(argv[1], "barrier"))
            break;
    }
    MPI_Finalize();
    return 0;
}
