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

static double send(MPI_Datatype type, MPI_Comm comm, int calls)
{
    double start = now();
    for (int i = 0; i < calls; i++)
        MPI_Send(NULL, 0, type, MPI_PROC_NULL, 0, comm);
    return now() - start;
}

/* A library that translates handles may look for a datatype in a table: its first, its last. */
double send_first(MPI_Comm *comm, int calls)
{
    return send(MPI_BYTE, *comm, calls);
}

double send_last(MPI_Comm *comm, int calls)
{
    return send(MPI_LONG_DOUBLE_INT, *comm, calls);
}

double send_own(MPI_Comm *comm, int calls)
{
    MPI_Datatype type;
    MPI_Type_contiguous(3, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    double seconds = send(type, *comm, calls);
    MPI_Type_free(&type);
    return seconds;
}

#define REQUESTS 64

/* An array of requests is translated there and back; persistent ones stay in it. */
double waitall(MPI_Comm *comm, int calls)
{
    MPI_Request requests[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        MPI_Send_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, *comm, &requests[i]);
    double seconds = 0;
    for (int i = 0; i < calls / REQUESTS; i++) {
        MPI_Startall(REQUESTS, requests);
        double start = now();
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        seconds += now() - start;
    }
    for (int i = 0; i < REQUESTS; i++)
        MPI_Request_free(&requests[i]);
    return seconds;
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
