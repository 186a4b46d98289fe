/* Stands before UCX and counts what goes to each of its endpoints: messages, and their bytes. Of the
   last ones it also knows the order.

   The real functions are looked for in the library that MPI has loaded. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST = 64, LAST = 1 << 16 };

static void *endpoints[MOST];
static uint64_t messages[MOST], bytes[MOST];
static int used;
static struct { uint64_t place, length; } last[LAST];
static uint64_t all;

typedef void *(*send_function)(void *, const void *, size_t, uint64_t, const void *);

/* A datatype that is none of contiguous bytes: its length says nothing of bytes. */
enum { HAS_DATATYPE = 1 << 3, CLASS = 7, PLACE_OF_DATATYPE = 24 };
static const uint64_t UNKNOWN = (uint64_t) 1 << 48;

static uint64_t length_of(size_t length, const char *more)
{
    if (!(*(const uint32_t *) more & HAS_DATATYPE))
        return length;
    uint64_t datatype = *(const uint64_t *) (more + PLACE_OF_DATATYPE);
    return datatype & CLASS ? UNKNOWN : length * (datatype >> 3);
}

static void count(void *endpoint, uint64_t length)
{
    int place = 0;
    while (place < used && endpoints[place] != endpoint)
        place++;
    if (place == MOST)
        return;
    if (place == used)
        endpoints[used++] = endpoint;
    messages[place]++;
    bytes[place] += length;
    last[all % LAST].place = place;
    last[all++ % LAST].length = length;
}

static send_function real(const char *name)
{
    return (send_function) dlsym(dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY), name);
}

void *ucp_tag_send_nbx(void *endpoint, const void *data, size_t length, uint64_t tag, const void *more)
{
    static send_function send;
    if (send == NULL)
        send = real("ucp_tag_send_nbx");
    count(endpoint, length_of(length, more));
    return send(endpoint, data, length, tag, more);
}

void *ucp_tag_send_sync_nbx(void *endpoint, const void *data, size_t length, uint64_t tag, const void *more)
{
    static send_function send;
    if (send == NULL)
        send = real("ucp_tag_send_sync_nbx");
    count(endpoint, length_of(length, more));
    return send(endpoint, data, length, tag, more);
}

void omb_py_traffic(uint64_t *all_messages, uint64_t *all_bytes)
{
    for (int place = 0; place < MOST; place++) {
        all_messages[place] = messages[place];
        all_bytes[place] = bytes[place];
    }
}

uint64_t omb_py_number(void)
{
    return all;
}

void omb_py_message(uint64_t number, uint64_t *place, uint64_t *length)
{
    *place = last[number % LAST].place;
    *length = last[number % LAST].length;
}
