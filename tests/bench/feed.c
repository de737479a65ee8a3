#include "feed.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed_internal.h"
#include "programs.h"

enum { BLOCK_BYTES = 128 * 1024, CONNECTION_BYTES = 512 * 1024, FIRST_VERSION = 10000000 };

/* ---- its process ---- */

static enum MHD_Result queue(struct MHD_Connection *mhd, unsigned status,
                             struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result queued = MHD_queue_response(mhd, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result answer_text(struct MHD_Connection *mhd, unsigned status, struct slice text)
{
    return queue(mhd, status,
                 MHD_create_response_from_buffer(text.len, (void *)(uintptr_t)text.ptr,
                                                 MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result answer_status(struct MHD_Connection *mhd, unsigned status)
{
    char text[160];
    int len = snprintf(text, sizeof text,
                       "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                       "\"%s\",\"code\":%u}",
                       status < 300 ? "Success" : "Failure", status);

    return answer_text(mhd, status, (struct slice){text, (size_t)len});
}

/* The kind whose list or watch a path is; KIND_OTHER: of none. */
static enum kind kind_of_path(const char *path)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        size_t len = strlen(kind_api_path((enum kind)kind));
        if (strncmp(path, kind_api_path((enum kind)kind), len) == 0 && path[len] == '/' &&
            strcmp(path + len + 1, kind_resource((enum kind)kind)) == 0)
            return (enum kind)kind;
    }
    return KIND_OTHER;
}

static enum MHD_Result put_argument(void *context, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    (void)kind;
    buf_printf(context, "&%s=%s", key, value == NULL ? "" : value);
    return MHD_YES;
}

static enum MHD_Result answer_list(struct MHD_Connection *mhd, enum kind kind)
{
    struct buf query;

    buf_init(&query, 1 << 16);
    (void)MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, (MHD_KeyValueIterator)put_argument,
                                    &query);
    const char *text = buf_text(&query);
    if (!atomic_load(&feed_world.control->may_stream) &&
        strstr(text, "sendInitialEvents") != NULL) {
        buf_dispose(&query);
        return answer_status(mhd, 422);
    }
    struct feed_answer *answer = feed_answer_new(kind, text);
    buf_dispose(&query);
    return queue(mhd, 200,
                 MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, feed_answer_read,
                                                   answer, feed_answer_free));
}

static enum MHD_Result answer_get(struct MHD_Connection *mhd, const char *path)
{
    enum kind kind = kind_of_path(path);
    struct buf text;

    if (kind != KIND_OTHER)
        return answer_list(mhd, kind);
    buf_init(&text, 1 << 20);
    enum MHD_Result result = feed_objects_find(path, &text)
                                 ? answer_text(mhd, 200, buf_slice(&text))
                                 : answer_status(mhd, 404);
    buf_dispose(&text);
    return result;
}

/* A Binding is good if it is of the next pod. */
static enum MHD_Result answer_write(struct MHD_Connection *mhd, const char *path)
{
    if (strstr(path, "/binding") == NULL)
        return answer_status(mhd, 201);
    int64_t n = feed_objects_waiting(path);
    unsigned long long next = (unsigned long long)n;
    if (n < 0 || !atomic_compare_exchange_strong(&feed_world.bound, &next, next + 1))
        return answer_status(mhd, 409);
    atomic_fetch_add(&feed_world.control->bindings, 1);
    return answer_status(mhd, 201);
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's parameters */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    static char seen;

    (void)context;
    (void)version;
    (void)data;
    if (*request == NULL) {
        *request = &seen;
        return MHD_YES;
    }
    if (*size != 0) {
        *size = 0;
        return MHD_YES;
    }
    return strcmp(method, "GET") == 0 ? answer_get(mhd, path) : answer_write(mhd, path);
}

static void run(int port_fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    feed_objects_make();
    atomic_store(&feed_world.version, FIRST_VERSION); /* behind those of the model's objects */
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
        NULL, on_request, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_END);
    uint16_t port =
        daemon == NULL ? 0 : MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    if (port == 0 || write(port_fd, &port, sizeof port) != (ssize_t)sizeof port)
        _exit(1);
    for (;;)
        (void)pause(); /* until it is killed */
}

/* ---- the other processes ---- */

static void write_kubeconfig(const struct feed *feed)
{
    FILE *file = fopen(feed->kubeconfig, "we");

    if (file == NULL ||
        fprintf(file,
                "current-context: x\n"
                "clusters: [{name: x, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                "users: [{name: x, user: {}}]\n"
                "contexts: [{name: x, context: {cluster: x, user: x}}]\n",
                feed->port) < 0 ||
        fclose(file) != 0)
        bench_die("cannot write the kubeconfig");
}

struct model feed_model(unsigned pods)
{
    return (struct model){.nodes = 5000,
                          .pods = pods,
                          .claims = pods,
                          .exclusive_share = 0.5,
                          .pending_share = 0.2,
                          .seed = 1};
}

void feed_start(struct feed *out, const struct model *model)
{
    int ends[2];

    *out = (struct feed){.control = mmap(NULL, sizeof *out->control, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    if (out->control == MAP_FAILED || pipe(ends) != 0)
        bench_die("no memory for the API server");
    atomic_store(&out->control->may_stream, true);
    feed_world.model = model;
    feed_world.control = out->control;
    (void)fflush(stdout);
    out->pid = fork();
    if (out->pid == 0)
        run(ends[1]);
    (void)close(ends[1]);
    if (read(ends[0], &out->port, sizeof out->port) != (ssize_t)sizeof out->port)
        bench_die("the API server did not start");
    (void)close(ends[0]);
    (void)snprintf(out->kubeconfig, sizeof out->kubeconfig, "%s/kubeconfig", bench_work);
    write_kubeconfig(out);
}

void feed_stop(struct feed *feed)
{
    (void)kill(feed->pid, SIGKILL);
    (void)waitpid(feed->pid, NULL, 0);
    (void)munmap(feed->control, sizeof *feed->control);
}
