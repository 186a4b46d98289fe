/* Calls of MPI that move nothing, for perf/abi.py: what handles and statuses cost by themselves.
 *
 * Each returns the seconds of so many calls. */
#include <mpi.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

double comm_rank(MPI_Comm *comm, int calls)
{
    int rank;
    double start = now();
    for (int i = 0; i < calls; i++)
        MPI_Comm_rank(*comm, &rank);
    return now() - start;
}

double type_size(MPI_Comm *comm, int calls)
{
    int size;
    double start = now();
    for (int i = 0; i < calls; i++)
        MPI_Type_size(MPI_DOUBLE, &size);
    return now() - start;
}

double get_count(MPI_Comm *comm, int calls)
{
    MPI_Status status;
    int count;
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, *comm, &status);
    double start = now();
    for (int i = 0; i < calls; i++)
        MPI_Get_count(&status, MPI_BYTE, &count);
    return now() - start;
}

double isend_wait(MPI_Comm *comm, int calls)
{
    MPI_Request request;
    MPI_Status status;
    double start = now();
    for (int i = 0; i < calls; i++) {
        MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, *comm, &request);
        MPI_Wait(&request, &status);
    }
    return now() - start;
}
