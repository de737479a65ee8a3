#include "extender/cli/who_watch.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "config/base/clock.h"
#include "config/base/text.h"
#include "extender/cli/commands.h"
#include "extender/commands/inquiry/inquiry_follow.h"
#include "extender/commands/who/who_claim.h"

enum { LINE_BYTES_MAX = 64 * 1024, TIME_BYTES_MAX = 64, ANSWER_BYTES_MAX = 1 << 30 };

struct watching {
    const struct who_watch *watch;
    struct buf last; /* the answer before, as JSON; empty: there is none */
    json_t *states;  /* of its claims, in words, by NAMESPACE/NAME */
    bool is_terminal;
    bool is_unread; /* nobody reads standard output */
    const volatile sig_atomic_t *interrupted;
};

/* ---- the end ---- */

static bool is_over(void *context)
{
    struct watching *watching = context;
    struct pollfd out = {.fd = STDOUT_FILENO};

    if (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0)
        watching->is_unread = true;
    return *watching->interrupted != 0 || watching->is_unread;
}

/* ---- lines ---- */

/* "db-1 and 2 more" */
static void put_names(struct buf *line, const struct who_pod *pods, size_t count)
{
    buf_put(line, pod_name(pods[0].pod));
    if (count > 1)
        buf_printf(line, " and %zu more", count - 1);
}

/* "held by db-0 on node-1, Terminating; web-1 and 2 more wait" */
static void put_state(struct buf *line, const struct who_claim *claim)
{
    if (!claim->claim->exists)
        buf_put(line, SLICE("does not exist; "));
    buf_put(line, SLICE("held by "));
    if (claim->holder_count == 0) {
        buf_put(line, SLICE("no pod"));
    } else {
        const struct pod *holder = claim->holders[0].pod;
        put_names(line, claim->holders, claim->holder_count);
        buf_printf(line, " on %.*s, %s", SLICE_ARG(pod_node(holder)),
                   holder->is_terminating ? "Terminating" : "Bound");
    }
    if (claim->holder_count == 0 && claim->attachment_count != 0)
        buf_printf(line, ", attached to %.*s", SLICE_ARG(claim->attachments[0].node));
    buf_put(line, SLICE("; "));
    if (claim->waiter_count == 0)
        buf_put(line, SLICE("no pod"));
    else
        put_names(line, claim->waiters, claim->waiter_count);
    buf_put(line, claim->waiter_count > 1 ? SLICE(" wait") : SLICE(" waits"));
}

/* Adds the state of the claim. False: no memory. */
static bool add_state(void *states, const struct who_claim *claim)
{
    struct buf key, state;

    buf_init(&key, LINE_BYTES_MAX);
    buf_init(&state, LINE_BYTES_MAX);
    buf_printf(&key, "%.*s/%.*s", SLICE_ARG(name_text(claim->claim->ns)),
               SLICE_ARG(claim_name(claim->claim)));
    put_state(&state, claim);
    const char *name = buf_text(&key), *text = buf_text(&state);
    bool ok =
        name != NULL && text != NULL && json_object_set_new(states, name, json_string(text)) == 0;
    buf_dispose(&key);
    buf_dispose(&state);
    return ok;
}

/* Prints the time, the claim and the state. */
static void print_line(const char *time, const char *name, const char *state)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_printf(&line, "%s  %s  %s", time, name, state);
    if (buf_text(&line) != NULL) {
        make_printable(line.bytes);
        (void)puts(line.bytes);
    }
    buf_dispose(&line);
}

/* Prints the claims whose state is not as before, or that the answer has no more. */
static void print_lines(const struct watching *watching, const char *time, json_t *states)
{
    const char *name, *gone = watching->watch->question->is_all
                                  ? "no pod waits"
                                  : "does not exist, and no pod names it";
    json_t *state;

    json_object_foreach (watching->states, name, state)
        if (json_object_get(states, name) == NULL)
            print_line(time, name, gone);
    json_object_foreach (states, name, state)
        if (!json_equal(state, json_object_get(watching->states, name)))
            print_line(time, name, json_string_value(state));
}

/* ---- a new answer ---- */

static bool print_screen(const char *time, const struct who_answer *answer)
{
    (void)printf("\033[H\033[2J%s\n\n", time);
    return who_print(answer, OUTPUT_TABLE, stdout);
}

/* What is printed of an answer. */
struct news {
    const struct who_answer *answer;
    struct buf json; /* {"claims", "notKnown"} */
    json_t *states;
};

static int print(struct watching *watching, struct news *news, struct error *err)
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
        (void)printf("{\"time\":\"%s\",%s\n", text, buf_text(&news->json) + 1);
    else if (watching->is_terminal)
        ok = print_screen(text, news->answer);
    else
        print_lines(watching, text, news->states);
    buf_dispose(&time);
    if (ok && fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    watching->is_unread = errno == EPIPE;
    return watching->is_unread ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

/* False: no memory. */
static bool describe(struct news *news)
{
    struct fields out;

    fields_begin_compact(&out, &news->json);
    fields_open(&out, NULL, '{');
    who_put(&out, news->answer);
    news->states = json_object();
    return fields_end(&out) && who_each(news->answer, add_state, news->states) &&
           buf_text(&news->json) != NULL;
}

/* Prints the answer if it is not as before, and keeps it for the next one. */
static int take(struct watching *watching, struct news *news, struct error *err)
{
    int rc = 0;

    if (watching->last.len == 0)
        watching->watch->begin(watching->watch->context);
    if (!slice_equal(buf_slice(&watching->last), buf_slice(&news->json)))
        rc = print(watching, news, err);
    buf_dispose(&watching->last);
    json_decref(watching->states);
    watching->last = news->json;
    watching->states = news->states;
    return rc;
}

static int changed(void *context, struct error *err)
{
    struct watching *watching = context;
    const struct who_watch *watch = watching->watch;
    struct who_answer answer;
    struct news news = {.answer = &answer};
    int rc;

    for (size_t i = 0; i < watch->question->count; i++)
        watch->found[i] = false;
    buf_init(&news.json, ANSWER_BYTES_MAX);
    if (who_answer(&answer, watch->inquiry, watch->question, watch->found) && describe(&news)) {
        rc = take(watching, &news, err);
    } else {
        buf_dispose(&news.json);
        json_decref(news.states);
        rc = error_no_memory(err);
    }
    who_dispose(&answer);
    return rc;
}

int who_watch(const struct who_watch *watch, struct error *err)
{
    const struct inquiry_wish wish = who_wish(watch->question);
    struct watching watching = {.watch = watch, .is_terminal = isatty(STDOUT_FILENO) != 0};
    const struct inquiry_follower follower = {&watching, changed, is_over};

    buf_init(&watching.last, ANSWER_BYTES_MAX);
    watching.interrupted = command_catch_signals(false);
    int rc = inquiry_follow(watch->inquiry, &wish, &follower, err);
    buf_dispose(&watching.last);
    json_decref(watching.states);
    if (watching.is_unread) /* what is left in its buffer would be an error at the exit */
        (void)!freopen("/dev/null", "w", stdout);
    return rc;
}
