/*
 * claimguard why: why a pod waits, as far as its claims are the cause.
 */
#include "extender/inquiry/why.h"

#include <errno.h>
#include <stdlib.h>

#include "config/base/nearest.h"
#include "config/config.h"
#include "extender/cli/commands.h"
#include "extender/report/render.h"

struct why_run {
    const struct arguments *arguments;
    struct inquiry inquiry;
    struct config *config;
    struct why_question question;
    struct operand operands[ARGUMENT_NAMES_MAX];
    bool found[ARGUMENT_NAMES_MAX];
    enum output_format format;
};

static int check_arguments(struct why_run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    const char *problem = NULL;

    if (arguments->operand_count == 0)
        problem = "give pods";
    else if (arguments->ns != NULL && arguments->all_namespaces)
        problem = "--namespace and --all-namespaces: give only one of them";
    else if (arguments->output != NULL &&
             (!render_format_parse(&run->format, arguments->output) || run->format == OUTPUT_WIDE))
        problem = "--output: expected table, json or yaml";
    return problem == NULL
               ? 0
               : error_set(err, ERROR_INVALID, "why: %s (see claimguard why --help)", problem);
}

/* Without a namespace, a name is in that of the context. */
static int read_question(struct why_run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    struct slice ns = slice_of(arguments->ns == NULL ? "" : arguments->ns);

    run->question = (struct why_question){run->operands, (size_t)arguments->operand_count};
    if (ns.len == 0 && !arguments->all_namespaces)
        ns = slice_of(run->inquiry.default_ns);
    for (int i = 0; i < arguments->operand_count; i++)
        if (operand_parse(&run->operands[i], arguments->operands[i], KIND_POD, ns, err) < 0)
            return err->code;
    return 0;
}

static int print_answer(const struct why_run *run, const json_t *answer, struct error *err)
{
    errno = 0;
    bool ok =
        run->format == OUTPUT_TABLE ? why_print(answer, stdout) : render_value(answer, run->format);

    return ok ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

/* ---- pods that are not there ---- */

/* A pod of that name in another namespace; NULL: none. */
static const struct pod *find_elsewhere(const struct inquiry *inquiry, struct slice name)
{
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(&inquiry->cluster, &walk)) != NULL;)
        if (slice_equal(pod_name(pod), name))
            return pod;
    return NULL;
}

/* "; did you mean NAME?": a pod where this one was looked for; "": none has a similar name. */
static const char *hint_of(const struct inquiry *inquiry, const struct operand *operand,
                           char hint[static NEAREST_HINT_BYTES])
{
    struct nearest nearest = {.typed = operand->name.ptr}; /* it ends where the argument does */
    struct table_walk walk = {.at = 0};

    for (const struct pod *pod; (pod = cluster_next_pod(&inquiry->cluster, &walk)) != NULL;) {
        struct slice name = pod_name(pod);
        if (operand->ns.len != 0 && !slice_equal(operand->ns, name_text(pod->ns)))
            continue;
        nearest_offer_copy(&nearest, name);
    }
    return nearest_hint(&nearest, "", hint);
}

/* Where else it can be: of a live cluster, only the namespace that is asked about is read. */
static const char *note_of(const struct inquiry *inquiry, const struct operand *operand,
                           const char *hint)
{
    bool is_in_all = operand->ns.len == 0;

    if (inquiry->snapshot != NULL)
        return is_in_all || *hint != '\0' ? "" : ", nor one of that name elsewhere in the snapshot";
    return is_in_all ? " that has not ended (Succeeded and Failed ones are not read)"
                     : " that has not ended (Succeeded and Failed ones are not read; -n NAMESPACE "
                       "looks in another namespace)";
}

/* Says on stderr that there is no such pod. */
static int report_missing(const struct inquiry *inquiry, const struct operand *operand)
{
    const struct pod *elsewhere = find_elsewhere(inquiry, operand->name);
    char text[NEAREST_HINT_BYTES];
    const char *hint = hint_of(inquiry, operand, text);
    struct error err;

    if (elsewhere != NULL)
        (void)error_set(&err, ERROR_NOT_FOUND,
                        "why: there is no pod %.*s/%.*s (there is %.*s/%.*s)",
                        SLICE_ARG(operand->ns), SLICE_ARG(operand->name),
                        SLICE_ARG(name_text(elsewhere->ns)), SLICE_ARG(operand->name));
    else
        (void)error_set(&err, ERROR_NOT_FOUND, "why: there is no pod %.*s%s%.*s%s%s",
                        SLICE_ARG(operand->ns), operand->ns.len == 0 ? "" : "/",
                        SLICE_ARG(operand->name), note_of(inquiry, operand, hint), hint);
    return command_fail(&err);
}

/* Returns the exit status. */
static int report_all_missing(const struct why_run *run)
{
    int status = EXIT_DONE;

    for (size_t i = 0; i < run->question.count; i++)
        if (!run->found[i])
            status = report_missing(&run->inquiry, &run->operands[i]);
    return status;
}

/* ---- the command ---- */

/* Returns the exit status, or an error. */
static int answer_with(struct why_run *run, struct why *why, struct error *err)
{
    const struct inquiry_wish wish = why_wish(why);

    if (inquiry_read(&run->inquiry, &wish, err) < 0)
        return err->code;
    inquiry_show_notes(&run->inquiry);
    json_t *value = why_answer(why, &run->inquiry, run->config, run->found);
    if (value == NULL)
        return error_no_memory(err);
    int rc = print_answer(run, value, err);
    json_decref(value);
    return rc < 0 ? rc : report_all_missing(run);
}

static int run_why(struct why_run *run, struct error *err)
{
    const struct inquiry_origin origin = {run->arguments->snapshot, run->arguments->kubeconfig,
                                          run->arguments->context};

    if (check_arguments(run, err) < 0 || config_load(&run->config, run->arguments->config, err) < 0)
        return err->code;
    int rc = inquiry_open(&run->inquiry, &origin, err);
    if (rc == 0)
        rc = read_question(run, err);
    if (rc == 0) {
        struct why *why = why_new(&run->question);
        rc = why == NULL ? error_no_memory(err) : answer_with(run, why, err);
        why_free(why);
    }
    inquiry_close(&run->inquiry);
    return rc;
}

int command_why(const struct arguments *arguments)
{
    struct why_run *run = calloc(1, sizeof *run);
    struct error err = {0};

    if (run == NULL) {
        (void)error_no_memory(&err);
        return command_fail(&err);
    }
    run->arguments = arguments;
    int rc = run_why(run, &err);
    config_free(run->config);
    free(run);
    return rc < 0 ? command_fail(&err) : rc;
}
