/*
 * claimguard who: who holds a claim, who waits for it, and what would free it.
 */
#include "extender/inquiry/who.h"

#include <errno.h>
#include <stdlib.h>

#include "config/base/nearest.h"
#include "extender/cli/commands.h"
#include "extender/cli/who_watch.h"
#include "extender/report/render.h"

enum { HINT_BYTES_MAX = 4096 };

struct who_run {
    const struct arguments *arguments;
    struct inquiry inquiry;
    struct who_question question;
    struct operand operands[ARGUMENT_NAMES_MAX];
    bool found[ARGUMENT_NAMES_MAX];
    enum output_format format;
};

static int check_arguments(struct who_run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    const char *problem = NULL;

    if (arguments->operand_count == 0 && !arguments->all)
        problem = "give claims, or --all";
    else if (arguments->operand_count != 0 && arguments->all)
        problem = "claims and --all: give only one of them";
    else if (arguments->ns != NULL && arguments->all_namespaces)
        problem = "--namespace and --all-namespaces: give only one of them";
    else if (arguments->output != NULL &&
             (!render_format_parse(&run->format, arguments->output) || run->format == OUTPUT_WIDE))
        problem = "--output: expected table, json or yaml";
    else if (arguments->watch && arguments->snapshot != NULL)
        problem = "--watch follows a live cluster, and a snapshot does not change";
    else if (arguments->watch && run->format == OUTPUT_YAML)
        problem = "--watch: --output is table or json";
    return problem == NULL
               ? 0
               : error_set(err, ERROR_INVALID, "who: %s (see claimguard who --help)", problem);
}

/* Without a namespace, a name is in that of the context, and --all means all namespaces. */
static int read_question(struct who_run *run, struct error *err)
{
    const struct arguments *arguments = run->arguments;
    struct slice ns = slice_of(arguments->ns == NULL ? "" : arguments->ns);

    run->question = (struct who_question){.operands = run->operands,
                                          .count = (size_t)arguments->operand_count,
                                          .is_all = arguments->all,
                                          .ns = ns};
    if (ns.len == 0 && !arguments->all_namespaces)
        ns = slice_of(run->inquiry.default_ns);
    for (int i = 0; i < arguments->operand_count; i++)
        if (operand_parse(&run->operands[i], arguments->operands[i], KIND_CLAIM, ns, err) < 0)
            return err->code;
    return 0;
}

static int print_answer(const struct who_run *run, const json_t *answer, struct error *err)
{
    bool ok = run->format == OUTPUT_TABLE ? who_print(answer, run->arguments->all, stdout)
                                          : render_value(answer, run->format);

    return ok ? 0 : error_system(err, errno == 0 ? EIO : errno, "standard output");
}

/* "; did you mean NAME?": a claim where this one was looked for; "": none has a similar name. */
static const char *hint_of(const struct inquiry *inquiry, const struct operand *operand,
                           char hint[static NEAREST_HINT_BYTES])
{
    struct nearest nearest = {.typed = operand->name.ptr}; /* it ends where the argument does */
    struct table_walk walk = {.at = 0};

    for (const struct claim *claim;
         (claim = cluster_next_claim(&inquiry->cluster, &walk)) != NULL;) {
        struct slice name = claim_name(claim);
        const struct operand same = {operand->ns, name};
        if (!claim->exists || !operand_is(&same, name_text(claim->ns), name))
            continue;
        nearest_offer_copy(&nearest, name);
    }
    return nearest_hint(&nearest, "", hint);
}

/* Says on stderr that there is no such claim. */
static int report_missing(const struct inquiry *inquiry, const struct operand *operand)
{
    char hint[NEAREST_HINT_BYTES];
    struct buf similar;
    struct error err;

    buf_init(&similar, HINT_BYTES_MAX);
    who_similar(inquiry, operand, &similar);
    const char *names = buf_text(&similar);
    bool is_near = names != NULL && *names != '\0';
    bool is_kind = operand_is_kind_word(operand);
    (void)error_set(
        &err, ERROR_NOT_FOUND, "who: there is no claim %.*s%s%.*s, and no pod names it%s%s%s%s",
        SLICE_ARG(operand->ns), operand->ns.len == 0 ? "" : "/", SLICE_ARG(operand->name),
        is_near ? " (there is " : "",
        is_near   ? names
        : is_kind ? ""
                  : hint_of(inquiry, operand, hint),
        is_near ? ")" : "", is_kind ? "; a kind is written before a slash: pvc/NAME" : "");
    buf_dispose(&similar);
    return command_fail(&err);
}

/* Returns the exit status. */
static int report_all_missing(const struct who_run *run)
{
    int status = EXIT_DONE;

    for (size_t i = 0; i < run->question.count; i++)
        if (!run->found[i])
            status = report_missing(&run->inquiry, &run->operands[i]);
    return status;
}

/* What is said once, when the cluster was read. */
static void begin_watch(void *context)
{
    const struct who_run *run = context;

    inquiry_show_notes(&run->inquiry);
    (void)report_all_missing(run);
}

/* Returns the exit status, or an error. */
static int answer(struct who_run *run, struct error *err)
{
    const struct inquiry_wish wish = who_wish(&run->question);

    if (run->arguments->watch)
        return who_watch(&(struct who_watch){.inquiry = &run->inquiry,
                                             .question = &run->question,
                                             .is_json = run->format == OUTPUT_JSON,
                                             .found = run->found,
                                             .begin = begin_watch,
                                             .context = run},
                         err);
    if (inquiry_read(&run->inquiry, &wish, err) < 0)
        return err->code;
    inquiry_show_notes(&run->inquiry);
    json_t *value = who_answer(&run->inquiry, &run->question, run->found);
    if (value == NULL)
        return error_no_memory(err);
    int rc = print_answer(run, value, err);
    json_decref(value);
    return rc < 0 ? rc : report_all_missing(run);
}

int command_who(const struct arguments *arguments)
{
    const struct inquiry_origin origin = {arguments->snapshot, arguments->kubeconfig,
                                          arguments->context};
    struct who_run *run = calloc(1, sizeof *run);
    struct error err = {0};

    if (run == NULL) {
        (void)error_no_memory(&err);
        return command_fail(&err);
    }
    run->arguments = arguments;
    int rc = check_arguments(run, &err);
    if (rc == 0) {
        rc = inquiry_open(&run->inquiry, &origin, &err);
        if (rc == 0 && (rc = read_question(run, &err)) == 0)
            rc = answer(run, &err);
        inquiry_close(&run->inquiry);
    }
    free(run);
    return rc < 0 ? command_fail(&err) : rc;
}
