#include "cache/client/http_client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cache/client/http_client_internal.h"
#include "config/base/clock.h"

enum { CONNECTIONS_KEPT = 64, CREDENTIALS_POLL_MS = 20, EVENTS_AT_ONCE = 16, LOOK_MS = 50 };

int http_client_global_init(struct error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return 0;
    return error_set(err, ERROR_SYSTEM, "libcurl cannot be initialised");
}

void http_client_global_cleanup(void)
{
    curl_global_cleanup();
}

/* ---- the events of sockets ----
 *
 * With epoll, an event of a watch costs the work on its own connection; curl_multi_perform would
 * look at all of them, each time. Two things happen only when libcurl looks: a host's second
 * address is tried after the first has failed, and a call ends whose time was over while it
 * connected once more. So it looks at all of them every LOOK_MS while a call connects, and when one
 * is overdue. */

/* A socket that never connected is removed after libcurl 7.88 has closed it (cf_socket_close): its
 * number may be another thread's by then, and is not in this epoll, so nothing happens. */
#ifdef __SANITIZE_THREAD__
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:remove_socket";
}
#endif
__attribute__((noinline)) static void remove_socket(int epoll, curl_socket_t socket)
{
    (void)epoll_ctl(epoll, EPOLL_CTL_DEL, socket, NULL);
}

/* libcurl wants to know of these events of the socket: its socket function. It does not fail, which
 * would end all calls: one whose socket cannot be followed ends by its time-out, and a watch when
 * its caller finds it silent. */
static int follow_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *unused)
{
    const struct http_client *client = context;
    struct epoll_event event = {.data.fd = socket};

    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        remove_socket(client->epoll, socket);
        return 0;
    }
    event.events = ((what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
                   ((what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(client->epoll, EPOLL_CTL_MOD, socket, &event) < 0)
        (void)epoll_ctl(client->epoll, EPOLL_CTL_ADD, socket, &event);
    return 0;
}

/* Its timer function. */
static int set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct http_client *client = context;

    (void)multi;
    client->timer_ns =
        timeout_ms < 0 ? UINT64_MAX : monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    return 0;
}

static int follow_events(struct http_client *client, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    client->timer_ns = UINT64_MAX;
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    client->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = client->wake;
    if (client->epoll < 0 || client->wake < 0 ||
        epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->wake, &event) < 0)
        return error_system(err, errno, "epoll");
    (void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, follow_socket);
    (void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    (void)curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    return 0;
}

static void close_events(struct http_client *client)
{
    if (client->epoll >= 0)
        (void)close(client->epoll);
    if (client->wake >= 0)
        (void)close(client->wake);
}

static void act(struct http_client *client, const struct epoll_event *event)
{
    int running = 0, what = ((event->events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                            ((event->events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                            ((event->events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
    uint64_t wakes;

    if (event->data.fd == client->wake)
        (void)!read(client->wake, &wakes, sizeof wakes);
    else
        (void)curl_multi_socket_action(client->multi, event->data.fd, what, &running);
}

static void act_if_due(struct http_client *client)
{
    uint64_t now_ns = monotonic_ns();
    int running = 0;

    if (now_ns < client->timer_ns)
        return;
    client->timer_ns = UINT64_MAX; /* unless it is set again, within this call */
    if (curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running) != CURLM_OK)
        client->timer_ns = now_ns + 1000 * NS_PER_MS; /* it has not said when: no memory */
}

/* When libcurl has to look at all calls; UINT64_MAX: not yet. */
static uint64_t next_look_ns(const struct http_client *client)
{
    uint64_t soon_ns = client->looked_ns + LOOK_MS * NS_PER_MS, next_ns = UINT64_MAX;

    for (const struct http_transfer *call = TAILQ_FIRST(&client->running); call != NULL;
         call = TAILQ_NEXT(call, link)) {
        bool connects = call->sendings == 0 || call->is_connecting;
        uint64_t at_ns = connects ? soon_ns : call->deadline_ns;
        at_ns = at_ns < soon_ns ? soon_ns : at_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

static void look(struct http_client *client)
{
    int running = 0;

    client->looked_ns = monotonic_ns();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* since it is slow for all events */
    (void)curl_multi_socket_all(client->multi, &running);
#pragma GCC diagnostic pop
}

/* Waits until that time, or for an event. */
static void wait_and_act(struct http_client *client, uint64_t until_ns)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    uint64_t now_ns = monotonic_ns(), look_ns = next_look_ns(client);
    uint64_t next_ns = until_ns < client->timer_ns ? until_ns : client->timer_ns;

    next_ns = look_ns < next_ns ? look_ns : next_ns;
    uint64_t wait_ms = next_ns <= now_ns ? 0 : (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    int count = epoll_wait(client->epoll, events, EVENTS_AT_ONCE,
                           wait_ms < INT_MAX ? (int)wait_ms : INT_MAX);

    for (int i = 0; i < count; i++)
        act(client, &events[i]);
    act_if_due(client);
    if (monotonic_ns() >= look_ns)
        look(client);
}

/* ---- the client ---- */

int http_client_new(struct http_client **out, const struct kubeconfig *kubeconfig,
                    struct error *err)
{
    struct http_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return error_no_memory(err);
    client->kubeconfig = kubeconfig;
    client->multi = curl_multi_init();
    if (client->multi == NULL) {
        free(client);
        return error_no_memory(err);
    }
    if (follow_events(client, err) < 0) {
        (void)curl_multi_cleanup(client->multi);
        close_events(client);
        free(client);
        return err->code;
    }
    (void)curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    TAILQ_INIT(&client->waiting);
    TAILQ_INIT(&client->running);
    credentials_init(&client->credentials, kubeconfig);
    *out = client;
    return 0;
}

static void call_free(struct http_client *client, struct http_transfer *call)
{
    if (call->launched_ns == 0) {
        TAILQ_REMOVE(&client->waiting, call, link);
    } else {
        TAILQ_REMOVE(&client->running, call, link);
        client->running_count[call->request.class]--;
        client->running_in[call->request.class][call->request.share]--;
        (void)curl_multi_remove_handle(client->multi, call->easy);
    }
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    curl_slist_free_all(call->connect_to);
    free(call);
}

void http_client_free(struct http_client *client)
{
    struct http_transfer *call;

    if (client == NULL)
        return;
    while ((call = TAILQ_FIRST(&client->waiting)) != NULL)
        call_free(client, call);
    while ((call = TAILQ_FIRST(&client->running)) != NULL)
        call_free(client, call);
    (void)curl_multi_cleanup(client->multi);
    close_events(client);
    credentials_dispose(&client->credentials);
    free(client);
}

void http_client_observe(struct http_client *client, struct api_stats *stats)
{
    client->stats = stats;
}

int http_client_start(struct http_client *client, const struct http_request *request,
                      struct http_transfer **out, struct error *err)
{
    struct http_transfer *call = calloc(1, sizeof *call);
    uint64_t now_ns = monotonic_ns();

    if (call == NULL)
        return error_no_memory(err);
    call->client = client;
    call->request = *request;
    call->target = api_target_of(request->method, request->path);
    call->deadline_ns =
        request->timeout_ms == 0 ? UINT64_MAX : now_ns + (uint64_t)request->timeout_ms * NS_PER_MS;
    TAILQ_INSERT_TAIL(&client->waiting, call, link);
    call->easy = curl_easy_init();
    CURLcode rc = call->easy == NULL ? CURLE_OUT_OF_MEMORY : http_client_set_request(call);
    if (rc != CURLE_OK) {
        call_free(client, call);
        return error_set(err, ERROR_UNAVAILABLE, "%s: %s", client->kubeconfig->server,
                         curl_easy_strerror(rc));
    }
    *out = call;
    return 0;
}

/* A watch is answered when it begins. The reflector counts how it ends. */
static void count(const struct http_transfer *call, long status, bool is_cut)
{
    bool has_answer = !is_cut || call->target.verb == API_VERB_WATCH;

    if (call->client->stats != NULL && call->launched_ns != 0)
        api_stats_count(call->client->stats, call->target, has_answer ? (unsigned)status : 0,
                        monotonic_ns() - call->launched_ns);
}

void http_client_cancel(struct http_client *client, struct http_transfer *call)
{
    long status = 0;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    count(call, status, true);
    call_free(client, call);
}

/* ---- the end of a call ---- */

static void end(struct http_transfer *call, const struct http_result *result)
{
    struct http_request request = call->request;

    call_free(call->client, call);
    if (request.on_end != NULL)
        request.on_end(request.context, result);
}

static void end_unsent(struct http_transfer *call, const char *why)
{
    struct http_result result = {.is_cut = true, .is_unsent = true};

    (void)snprintf(result.error, sizeof result.error, "%.255s", why);
    end(call, &result);
}

/* Why there is no complete answer. */
static const char *explain(const struct http_transfer *call, CURLcode code)
{
    if (!call->is_read && call->sendings > 1)
        return "the connection broke before the answer; what became of the request is unknown";
    return call->error[0] == '\0' ? curl_easy_strerror(code) : call->error;
}

static void finish(struct http_client *client, CURL *easy, CURLcode code)
{
    struct http_transfer *call = NULL;
    struct http_result result = {0};
    curl_off_t retry_after_s = 0;
    long status = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    result.status = (unsigned)status;
    result.is_cut = code != CURLE_OK;
    result.is_unsent = call->sendings == 0;
    result.retry_after_ms = (retry_after_s < INT32_MAX ? (int64_t)retry_after_s : INT32_MAX) * 1000;
    if (code != CURLE_OK)
        (void)snprintf(result.error, sizeof result.error, "%s", explain(call, code));
    if (status != 0 && call->request.class != HTTP_WATCH)
        client->answered_ns = monotonic_ns();
    count(call, status, result.is_cut);
    if (status == 401)
        credentials_reject(&client->credentials, call->generation, monotonic_ns());
    end(call, &result);
}

/* ---- the queue ---- */

static const size_t at_once_max[HTTP_CLASS_COUNT] = {
    [HTTP_READ] = HTTP_CALLS_AT_ONCE_MAX,
    [HTTP_WRITE] = HTTP_CALLS_AT_ONCE_MAX,
    [HTTP_MESSAGE] = HTTP_MESSAGES_AT_ONCE_MAX,
    [HTTP_WATCH] = SIZE_MAX,
};

/* The waiting call of the class whose turn it is; NULL: none can be sent now. */
static struct http_transfer *next_of(struct http_client *client, enum http_class class)
{
    size_t running = client->running_count[class], fewest = SIZE_MAX;
    struct http_transfer *next = NULL;

    if (running >= at_once_max[class])
        return NULL;
    for (struct http_transfer *call = TAILQ_FIRST(&client->waiting); call != NULL;
         call = TAILQ_NEXT(call, link)) {
        size_t running_in = client->running_in[class][call->request.share];
        if (call->request.class == class && running_in < fewest &&
            (class == HTTP_WATCH ||
             !share_is_over(running_in, running, 1, at_once_max[class], HTTP_SHARE_PARTS))) {
            next = call;
            fewest = running_in;
        }
    }
    return next;
}

static void launch(struct http_client *client, struct http_transfer *call, uint64_t now_ns)
{
    uint64_t left_ms = (call->deadline_ns - now_ns) / NS_PER_MS + 1;

    if (call->request.on_turn != NULL && !call->request.on_turn(call->request.context)) {
        call_free(client, call);
        return;
    }
    CURLcode rc = http_client_set_credentials(call, &client->credentials);
    if (rc == CURLE_OK && call->deadline_ns != UINT64_MAX)
        rc = curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    CURLMcode added = rc == CURLE_OK ? curl_multi_add_handle(client->multi, call->easy) : CURLM_OK;
    if (rc != CURLE_OK || added != CURLM_OK) {
        end_unsent(call, rc != CURLE_OK ? curl_easy_strerror(rc) : curl_multi_strerror(added));
        return;
    }
    call->generation = client->credentials.generation;
    TAILQ_REMOVE(&client->waiting, call, link);
    TAILQ_INSERT_TAIL(&client->running, call, link);
    call->launched_ns = now_ns;
    client->running_count[call->request.class]++;
    client->running_in[call->request.class][call->request.share]++;
}

/* Ends waiting calls: those whose deadline has passed; all of them, if there are no credentials
 * (problem). Returns when the next one of the others ends. */
static uint64_t end_overdue(struct http_client *client, const char *problem, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;

    for (struct http_transfer *call = TAILQ_FIRST(&client->waiting), *next; call != NULL;
         call = next) {
        next = TAILQ_NEXT(call, link);
        if (now_ns >= call->deadline_ns)
            end_unsent(call, "its time was over before its turn came");
        else if (problem != NULL)
            end_unsent(call, problem);
        else if (call->deadline_ns < next_ns)
            next_ns = call->deadline_ns;
    }
    return next_ns;
}

/* Launches waiting calls, and ends those whose deadline has passed. Returns when the next one ends.
 */
static uint64_t attend(struct http_client *client, uint64_t now_ns)
{
    bool is_asked = !TAILQ_EMPTY(&client->waiting) || credentials_are_coming(&client->credentials);
    struct http_transfer *call;
    struct error err = {0};

    int rc = is_asked ? credentials_get(&client->credentials, now_ns, now_ms(), &err) : 0;
    uint64_t next_ns = end_overdue(client, rc < 0 ? err.message : NULL, now_ns);
    for (int class = 0; rc == 0 && class < HTTP_CLASS_COUNT; class ++)
        while ((call = next_of(client, (enum http_class) class)) != NULL)
            launch(client, call, now_ns);
    uint64_t credentials_ns = now_ns + CREDENTIALS_POLL_MS * NS_PER_MS;
    return credentials_are_coming(&client->credentials) && credentials_ns < next_ns ? credentials_ns
                                                                                    : next_ns;
}

/* Since when calls have been waiting, while none was answered. */
static void note_silence(struct http_client *client)
{
    const struct http_transfer *call = TAILQ_FIRST(&client->running);
    uint64_t since_ns = 0;

    while (call != NULL && call->request.class != HTTP_READ) /* a webhook may delay writes */
        call = TAILQ_NEXT(call, link);
    if (call != NULL)
        since_ns =
            call->launched_ns > client->answered_ns ? call->launched_ns : client->answered_ns;
    atomic_store(&client->unanswered_ns, since_ns);
}

int64_t http_client_unanswered_ms(const struct http_client *client)
{
    uint64_t since_ns = atomic_load(&client->unanswered_ns), now_ns = monotonic_ns();

    return since_ns == 0 || now_ns < since_ns ? 0 : (int64_t)((now_ns - since_ns) / NS_PER_MS);
}

/* Ends calls that have an answer. Whether there was one. */
static bool finish_all(struct http_client *client)
{
    bool has_any = false;
    int left = 0;

    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE)
            continue;
        finish(client, message->easy_handle, message->data.result);
        has_any = true;
    }
    return has_any;
}

void http_client_poll(struct http_client *client, int timeout_ms)
{
    uint64_t now_ns = monotonic_ns();
    uint64_t until_ns = now_ns + (timeout_ms < 0 ? 0 : (uint64_t)timeout_ms * NS_PER_MS);
    uint64_t next_ns = attend(client, now_ns);

    act_if_due(client);
    if (!finish_all(client)) { /* else there may be more to start */
        wait_and_act(client, next_ns < until_ns ? next_ns : until_ns);
        (void)finish_all(client);
    }
    note_silence(client);
}

void http_client_wake(struct http_client *client)
{
    (void)!write(client->wake, &(uint64_t){1}, sizeof(uint64_t));
}
