#include "extender/cli/who_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "config/base/printable.h"
#include "extender/inquiry/inquiry_follow.h"
#include "extender/report/value.h"

enum { LINE_BYTES_MAX = 64 * 1024, TIME_BYTES_MAX = 64 };

struct watching {
    const struct who_watch *watch;
    json_t *last;   /* the answer before; NULL: there is none */
    json_t *claims; /* those of it, by NAMESPACE/NAME */
    bool is_terminal;
    bool is_unread; /* nobody reads standard output */
};

/* ---- the end ---- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* the write fails */
}

static bool is_over(void *context)
{
    struct watching *watching = context;
    struct pollfd out = {.fd = STDOUT_FILENO};

    if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0)
        watching->is_unread = true;
    return is_interrupted != 0 || watching->is_unread;
}

/* ---- lines ---- */

/* "db-1 and 2 more" */
static void put_names(struct buf *line, const json_t *pods)
{
    buf_put(line, slice_of(value_string(json_array_get(pods, 0), "name")));
    if (json_array_size(pods) > 1)
        buf_printf(line, " and %zu more", json_array_size(pods) - 1);
}

/* "held by db-0 on node-1, Terminating; web-1 and 2 more wait" */
static void put_state(struct buf *line, const json_t *claim)
{
    const json_t *holders = json_object_get(claim, "heldBy");
    const json_t *waiters = json_object_get(claim, "waiting");
    const json_t *attachment = json_array_get(json_object_get(claim, "attachments"), 0);
    const json_t *holder = json_array_get(holders, 0);
    size_t waiting = json_array_size(waiters);

    if (!json_is_true(json_object_get(claim, "found")))
        buf_put(line, SLICE("does not exist; "));
    buf_put(line, SLICE("held by "));
    if (holder == NULL) {
        buf_put(line, SLICE("no pod"));
    } else {
        put_names(line, holders);
        buf_printf(line, " on %s, %s", value_string(holder, "node"), value_string(holder, "as"));
    }
    if (holder == NULL && attachment != NULL)
        buf_printf(line, ", attached to %s", value_string(attachment, "node"));
    buf_put(line, SLICE("; "));
    if (waiting == 0)
        buf_put(line, SLICE("no pod"));
    else
        put_names(line, waiters);
    buf_put(line, waiting > 1 ? SLICE(" wait") : SLICE(" waits"));
}

/* The claims of the answer by NAMESPACE/NAME; NULL: no memory. */
static json_t *index_claims(const json_t *answer)
{
    json_t *index = json_object(), *claim;
    struct buf key;
    int rc = index == NULL ? -1 : 0;
    size_t i;

    buf_init(&key, LINE_BYTES_MAX);
    json_array_foreach (json_object_get(answer, "claims"), i, claim) {
        buf_reset(&key, LINE_BYTES_MAX);
        buf_printf(&key, "%s/%s", value_string(claim, "namespace"), value_string(claim, "name"));
        rc |= buf_text(&key) == NULL ? -1 : json_object_set(index, buf_text(&key), claim);
    }
    buf_dispose(&key);
    return value_whole(index, rc);
}

/* Prints the time, the claim and the state. */
static void print_line(const char *time, const char *name, const struct buf *state)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_printf(&line, "%s  %s  ", time, name);
    buf_put(&line, buf_slice(state));
    if (buf_text(&line) != NULL) {
        make_printable(line.bytes);
        (void)puts(line.bytes);
    }
    buf_dispose(&line);
}

/* Prints the claim unless it looks as before. before: NULL: it was not in the answer. */
static void print_changed(const char *time, const char *name, const json_t *claim,
                          const json_t *before)
{
    struct buf state, former;

    buf_init(&state, LINE_BYTES_MAX);
    buf_init(&former, LINE_BYTES_MAX);
    put_state(&state, claim);
    if (before != NULL)
        put_state(&former, before);
    if (before == NULL || !slice_equal(buf_slice(&state), buf_slice(&former)))
        print_line(time, name, &state);
    buf_dispose(&state);
    buf_dispose(&former);
}

/* Prints the claims that the answer has no more. */
static void print_gone(const struct watching *watching, const char *time, const json_t *claims)
{
    struct buf state;
    const char *name;
    json_t *claim;

    buf_init(&state, LINE_BYTES_MAX);
    buf_put(&state, watching->watch->question->is_all
                        ? SLICE("no pod waits")
                        : SLICE("does not exist, and no pod names it"));
    json_object_foreach (watching->claims, name, claim)
        if (json_object_get(claims, name) == NULL)
            print_line(time, name, &state);
    buf_dispose(&state);
}

static void print_lines(const struct watching *watching, const char *time, json_t *claims)
{
    const char *name;
    json_t *claim;

    print_gone(watching, time, claims);
    json_object_foreach (claims, name, claim)
        print_changed(time, name, claim, json_object_get(watching->claims, name));
}

/* ---- the other forms ---- */

static bool print_json(const char *time, json_t *answer)
{
    json_t *object =
        json_pack("{s:s,s:O,s:O}", "time", time, "claims", json_object_get(answer, "claims"),
                  "notKnown", json_object_get(answer, "notKnown"));
    bool ok = object != NULL && json_dumpf(object, stdout, JSON_COMPACT) == 0;

    json_decref(object);
    return ok && putchar('\n') != EOF;
}

static bool print_screen(const struct watching *watching, const char *time, const json_t *answer)
{
    (void)printf("\033[H\033[2J%s\n\n", time);
    return who_print(answer, watching->watch->question->is_all, stdout);
}

/* ---- a new answer ---- */

static int print(struct watching *watching, json_t *answer, json_t *claims, struct error *err)
{
    struct buf time;
    bool ok = true;

    buf_init(&time, TIME_BYTES_MAX);
    buf_time(&time, now_ms(), false);
    const char *text = buf_text(&time);
    errno = 0;
    if (text == NULL)
        ok = false;
    else if (watching->watch->is_json)
        ok = print_json(text, answer);
    else if (watching->is_terminal)
        ok = print_screen(watching, text, answer);
    else
        print_lines(watching, text, claims);
    buf_dispose(&time);
    if (ok && fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    watching->is_unread = errno == EPIPE;
    return watching->is_unread ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

static int changed(void *context, struct error *err)
{
    struct watching *watching = context;
    const struct who_watch *watch = watching->watch;
    int rc = 0;

    for (size_t i = 0; i < watch->question->count; i++)
        watch->found[i] = false;
    json_t *answer = who_answer(watch->inquiry, watch->question, watch->found);
    json_t *claims = answer == NULL ? NULL : index_claims(answer);
    if (claims == NULL) {
        json_decref(answer);
        return error_no_memory(err);
    }
    if (watching->last == NULL)
        watch->begin(watch->context);
    if (watching->last == NULL || !json_equal(watching->last, answer))
        rc = print(watching, answer, claims, err);
    json_decref(watching->last);
    json_decref(watching->claims);
    watching->last = answer;
    watching->claims = claims;
    return rc;
}

int who_watch(const struct who_watch *watch, struct error *err)
{
    const struct inquiry_wish wish = who_wish(watch->question);
    struct watching watching = {.watch = watch, .is_terminal = isatty(STDOUT_FILENO) != 0};
    const struct inquiry_follower follower = {&watching, changed, is_over};

    catch_signals();
    int rc = inquiry_follow(watch->inquiry, &wish, &follower, err);
    json_decref(watching.last);
    json_decref(watching.claims);
    if (watching.is_unread) /* what is left in its buffer would be an error at the exit */
        (void)!freopen("/dev/null", "w", stdout);
    return rc;
}
