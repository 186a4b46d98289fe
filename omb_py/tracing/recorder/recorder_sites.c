/* Which line of a Python program makes a call: asked of the interpreter by its stable ABI, which is
 * looked up at run time, so that the library needs no header of Python and serves every version.
 *
 * mpi4py gives the interpreter's lock back while MPI works. It is taken here for the fraction of a
 * microsecond in which a frame is looked at, after the call and outside of its time.
 *
 * PyFrame_GetLineNumber decodes the code's table of lines from its start, 20 ns for each entry. It
 * is called once for each instruction that calls: later the instruction's offset finds the line.
 */

#ifndef RECORDER_SITES_C
#define RECORDER_SITES_C

#include "recorder.c"

static struct {
    int (*Py_IsInitialized)(void);
    void *(*PyGILState_GetThisThreadState)(void);
    int (*PyGILState_Ensure)(void);
    void (*PyGILState_Release)(int state);
    void *(*PyEval_GetFrame)(void);                           /* borrowed */
    void *(*PyFrame_GetCode)(void *frame);                    /* new */
    int (*PyFrame_GetLineNumber)(void *frame);
    void *(*PyObject_GetAttrString)(void *of, const char *);  /* new */
    const char *(*PyUnicode_AsUTF8AndSize)(void *text, ssize_t *length);
    void (*PyErr_Clear)(void);
    void (*Py_DecRef)(void *object);
    int (*PyFrame_GetLasti)(void *frame); /* NULL: before Python 3.11; not of the stable ABI */
} python;

static bool with_sites;

/* Record lines from now on; false where this process has no interpreter that tells them. */
int omb_py_sites(void)
{
#define LOOK_UP(name)                                                                              \
    if (!(*(void **)&python.name = dlsym(RTLD_DEFAULT, #name)))                                    \
        return false
    LOOK_UP(Py_IsInitialized);
    LOOK_UP(PyGILState_GetThisThreadState);
    LOOK_UP(PyGILState_Ensure);
    LOOK_UP(PyGILState_Release);
    LOOK_UP(PyEval_GetFrame);
    LOOK_UP(PyFrame_GetCode);
    LOOK_UP(PyFrame_GetLineNumber);
    LOOK_UP(PyObject_GetAttrString);
    LOOK_UP(PyUnicode_AsUTF8AndSize);
    LOOK_UP(PyErr_Clear);
    LOOK_UP(Py_DecRef);
    *(void **)&python.PyFrame_GetLasti = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
    with_sites = true;
    return true;
}

/* An attribute of a code object as text, cut off at so many bytes; empty where there is none. */
static void text_of(void *code, const char *name, char *into, size_t most)
{
    ssize_t length = 0;
    void *found = python.PyObject_GetAttrString(code, name);
    const char *text = found ? python.PyUnicode_AsUTF8AndSize(found, &length) : NULL;
    if (!text)
        python.PyErr_Clear();
    snprintf(into, most, "%.*s", text ? (int)length : 0, text ? text : "");
    for (char *at = into; *at; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    if (found)
        python.Py_DecRef(found);
}

/* The number of the name of a frame's line, from now on that of `place` in its code, which is kept
 * lest another one gets its address. */
static int64_t new_line(void *frame, void *code, int place)
{
    int line = python.PyFrame_GetLineNumber(frame);
    char file[1024], function[512], name[1600];
    text_of(code, "co_filename", file, sizeof file);
    text_of(code, "co_qualname", function, sizeof function); /* since Python 3.11 */
    if (!*function)
        text_of(code, "co_name", function, sizeof function);
    int length = snprintf(name, sizeof name, "%s:%d %s", file, line, function);
    lock();
    int64_t number = number_of_name(name, length);
    uint64_t address = (uint64_t)(uintptr_t)code;
    bool kept = add(&lines_of_code, address, (uint64_t)place, number ? number : -1);
    unlock();
    if (!kept)
        python.Py_DecRef(code);
    return number;
}

/* The number of the line at which this thread's program is; 0 where it is none of Python. */
static int site(void)
{
    if (!with_sites || !python.Py_IsInitialized() || !python.PyGILState_GetThisThreadState())
        return 0;
    int64_t number = 0;
    int state = python.PyGILState_Ensure();
    void *frame = python.PyEval_GetFrame();
    if (frame) {
        void *code = python.PyFrame_GetCode(frame);
        int place = python.PyFrame_GetLasti ? python.PyFrame_GetLasti(frame)
                                            : python.PyFrame_GetLineNumber(frame);
        lock();
        int64_t *known = find(&lines_of_code, (uint64_t)(uintptr_t)code, (uint64_t)place);
        number = known ? *known : 0;
        unlock();
        if (known)
            python.Py_DecRef(code);
        else
            number = new_line(frame, code, place);
    }
    python.PyGILState_Release(state);
    return number > 0 ? (int)number : 0;
}

#endif
