/*
 * claimguard who: who holds a claim, who waits for it, and what would free it. claimguard why: why
 * a pod waits, as far as its claims are the cause.
 */
#include <errno.h>
#include <stdlib.h>

#include "config/base/text.h"
#include "config/config.h"
#include "extender/cli/commands.h"
#include "extender/cli/who_watch.h"
#include "extender/commands/why/why.h"
#include "extender/report/fields.h"

enum { HINT_BYTES_MAX = 4096, SAME_MAX = 3 };

/* What is asked about claims, or about pods. */
struct question {
    const struct arguments *arguments;
    struct inquiry inquiry;
    struct config *config;
    struct operand operands[ARGUMENT_NAMES_MAX];
    bool found[ARGUMENT_NAMES_MAX]; /* of each operand, by the answer */
    size_t count;
    enum output_format format;
};

/* What differs between the commands. */
struct asker {
    const char *command;
    enum kind kind; /* of the operands */

    /* What is wrong with the arguments; NULL: nothing. */
    const char *(*find_problem)(struct question *question);

    /* Returns the exit status, or an error. */
    int (*answer)(struct question *question, struct error *err);
};

/* ---- the command line ---- */

/* Of the arguments that both commands have. */
static const char *find_problem(struct question *question)
{
    const struct arguments *arguments = question->arguments;

    if (arguments->ns != NULL && arguments->all_namespaces)
        return "--namespace and --all-namespaces: give only one of them";
    return output_format_parse(&question->format, arguments->output, OUTPUTS_PLAIN)
               ? NULL
               : "--output: expected table, json or yaml";
}

/* Without a namespace, a name is in that of the context. */
static int read_operands(struct question *question, enum kind kind, struct error *err)
{
    const struct arguments *arguments = question->arguments;
    struct slice ns = slice_of(arguments->ns == NULL ? "" : arguments->ns);

    if (ns.len == 0 && !arguments->all_namespaces)
        ns = slice_of(question->inquiry.default_ns);
    question->count = (size_t)arguments->operand_count;
    for (size_t i = 0; i < question->count; i++)
        if (operand_parse(&question->operands[i], arguments->operands[i], kind, ns, err) < 0)
            return err->code;
    return 0;
}

static int ask(struct question *question, const struct asker *asker, struct error *err)
{
    const struct arguments *arguments = question->arguments;
    const struct inquiry_origin origin = {arguments->snapshot, arguments->kubeconfig,
                                          arguments->context};
    const char *problem = asker->find_problem(question);

    if (problem != NULL)
        return command_misused(asker->command, problem, err);
    if (config_load(&question->config, arguments->config, err) < 0)
        return err->code;
    int rc = inquiry_open(&question->inquiry, &origin, err);
    if (rc == 0)
        rc = read_operands(question, asker->kind, err);
    if (rc == 0)
        rc = asker->answer(question, err);
    inquiry_close(&question->inquiry);
    return rc;
}

static int run(const struct asker *asker, const struct arguments *arguments, struct error *err)
{
    struct question *question = calloc(1, sizeof *question);

    if (question == NULL)
        return error_no_memory(err);
    question->arguments = arguments;
    int rc = ask(question, asker, err);
    config_free(question->config);
    free(question);
    return rc;
}

/* Says on stderr which operands are not there. Returns the exit status. */
static int report_all_missing(const struct question *question,
                              int (*report)(const struct inquiry *inquiry,
                                            const struct operand *operand))
{
    int status = EXIT_DONE;

    for (size_t i = 0; i < question->count; i++)
        if (!question->found[i])
            status = report(&question->inquiry, &question->operands[i]);
    return status;
}

/* ---- who ---- */

/* "; did you mean NAME?": a claim where this one was looked for; "": none has a similar name. */
static const char *similar_claim(const struct inquiry *inquiry, const struct operand *operand,
                                 char hint[static NEAREST_HINT_BYTES])
{
    struct nearest nearest = {.typed = operand->name.ptr}; /* it ends where the argument does */
    struct table_walk walk = {.at = 0};

    for (const struct claim *claim;
         (claim = cluster_next_claim(&inquiry->cluster, &walk)) != NULL;) {
        struct slice name = claim_name(claim);
        const struct operand same = {operand->ns, name, KIND_CLAIM};
        if (!claim->exists || !operand_is(&same, name_text(claim->ns), name))
            continue;
        nearest_offer_copy(&nearest, name);
    }
    return nearest_hint(&nearest, "", hint);
}

/* The claim of that name in the next namespace behind that of `last`, or in the first one; NULL:
 * there is none. */
static const struct claim *next_same(const struct cluster *cluster, struct slice name,
                                     const struct claim *last)
{
    struct table_walk walk = {.at = 0};
    const struct claim *next = NULL;

    for (const struct claim *claim; (claim = cluster_next_claim(cluster, &walk)) != NULL;)
        if (claim->exists && slice_equal(claim_name(claim), name) &&
            (last == NULL || slice_compare(name_text(claim->ns), name_text(last->ns)) > 0) &&
            (next == NULL || slice_compare(name_text(claim->ns), name_text(next->ns)) < 0))
            next = claim;
    return next;
}

/* Adds "NS/NAME, ...": claims of the same name in other namespaces, a few. */
static void put_same(struct buf *out, const struct inquiry *inquiry, const struct operand *operand)
{
    const struct claim *claim = next_same(&inquiry->cluster, operand->name, NULL);

    for (int count = 0; count < SAME_MAX && claim != NULL; count++) {
        buf_printf(out, "%s%.*s/%.*s", count == 0 ? "" : ", ", SLICE_ARG(name_text(claim->ns)),
                   SLICE_ARG(claim_name(claim)));
        claim = next_same(&inquiry->cluster, operand->name, claim);
    }
}

/* Says on stderr that there is no such claim. */
static int report_missing_claim(const struct inquiry *inquiry, const struct operand *operand)
{
    char hint[NEAREST_HINT_BYTES];
    struct buf similar;
    struct error err;

    buf_init(&similar, HINT_BYTES_MAX);
    put_same(&similar, inquiry, operand);
    const char *names = buf_text(&similar);
    bool is_near = names != NULL && *names != '\0';
    bool is_kind = operand_is_kind_word(operand);
    (void)error_set(
        &err, ERROR_NOT_FOUND, "who: there is no claim %.*s%s%.*s, and no pod names it%s%s%s%s",
        SLICE_ARG(operand->ns), operand->ns.len == 0 ? "" : "/", SLICE_ARG(operand->name),
        is_near ? " (there is " : "",
        is_near   ? names
        : is_kind ? ""
                  : similar_claim(inquiry, operand, hint),
        is_near ? ")" : "", is_kind ? "; a kind is written before a slash: pvc/NAME" : "");
    buf_dispose(&similar);
    return command_fail(&err);
}

/* What is said once, when the cluster was read. */
static void begin_watch(void *context)
{
    const struct question *question = context;

    inquiry_show_notes(&question->inquiry);
    (void)report_all_missing(question, report_missing_claim);
}

static int answer_who(struct question *question, struct error *err)
{
    const struct arguments *arguments = question->arguments;
    const struct who_question who = {question->operands, question->count, arguments->all,
                                     slice_of(arguments->ns == NULL ? "" : arguments->ns),
                                     question->config};
    const struct inquiry_wish wish = who_wish(&who);

    if (arguments->watch)
        return who_watch(&(struct who_watch){.inquiry = &question->inquiry,
                                             .question = &who,
                                             .is_json = question->format == OUTPUT_JSON,
                                             .found = question->found,
                                             .begin = begin_watch,
                                             .context = question},
                         err);
    if (inquiry_read(&question->inquiry, &wish, err) < 0)
        return err->code;
    inquiry_show_notes(&question->inquiry);
    struct who_answer answer;
    bool is_whole = who_answer(&answer, &question->inquiry, &who, question->found);
    errno = 0;
    int rc = is_whole ? command_printed(who_print(&answer, question->format, stdout), err)
                      : error_no_memory(err);
    who_dispose(&answer);
    return rc < 0 ? rc : report_all_missing(question, report_missing_claim);
}

static const char *find_who_problem(struct question *question)
{
    const struct arguments *arguments = question->arguments;

    if (arguments->operand_count == 0 && !arguments->all)
        return "give claims, or --all";
    if (arguments->operand_count != 0 && arguments->all)
        return "claims and --all: give only one of them";
    const char *problem = find_problem(question);
    if (problem != NULL || !arguments->watch)
        return problem;
    if (arguments->snapshot != NULL)
        return "--watch follows a live cluster, and a snapshot does not change";
    return question->format == OUTPUT_YAML ? "--watch: --output is table or json" : NULL;
}

int command_who(const struct arguments *arguments, struct error *err)
{
    static const struct asker asker = {"who", KIND_CLAIM, find_who_problem, answer_who};

    return run(&asker, arguments, err);
}

/* ---- why ---- */

/* A pod of that name, in the first namespace that has one; NULL: none. */
static const struct pod *find_elsewhere(const struct inquiry *inquiry, struct slice name)
{
    struct table_walk walk = {.at = 0};
    const struct pod *first = NULL;

    for (const struct pod *pod; (pod = cluster_next_pod(&inquiry->cluster, &walk)) != NULL;)
        if (slice_equal(pod_name(pod), name) &&
            (first == NULL || slice_compare(name_text(pod->ns), name_text(first->ns)) < 0))
            first = pod;
    return first;
}

/* "; did you mean NAME?": a pod where this one was looked for; "": none has a similar name. */
static const char *similar_pod(const struct inquiry *inquiry, const struct operand *operand,
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

/* Says on stderr that there is no such object that is no pod, and no pod of it. */
static int report_missing_owner(const struct operand *operand)
{
    struct error err;

    (void)error_set(&err, ERROR_NOT_FOUND, "why: there is no %s %.*s%s%.*s, and no pod %s it",
                    kind_text(operand->kind), SLICE_ARG(operand->ns),
                    operand->ns.len == 0 ? "" : "/", SLICE_ARG(operand->name),
                    operand->kind == KIND_CLAIM  ? "names"
                    : operand->kind == KIND_NODE ? "is on"
                                                 : "is of");
    return command_fail(&err);
}

/* Says on stderr that there is no such pod. */
static int report_missing_pod(const struct inquiry *inquiry, const struct operand *operand)
{
    const struct pod *elsewhere = find_elsewhere(inquiry, operand->name);
    char text[NEAREST_HINT_BYTES];
    const char *hint = similar_pod(inquiry, operand, text);
    struct error err;

    if (operand->kind != KIND_POD)
        return report_missing_owner(operand);
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

static int print_why(struct question *question, struct why *why, struct error *err)
{
    const struct inquiry_wish wish = why_wish(why);

    if (inquiry_read(&question->inquiry, &wish, err) < 0)
        return err->code;
    inquiry_show_notes(&question->inquiry);
    if (!why_answer(why, &question->inquiry, question->config, question->found))
        return error_no_memory(err);
    errno = 0;
    int rc = command_printed(why_print(why, question->format, stdout), err);
    return rc < 0 ? rc : report_all_missing(question, report_missing_pod);
}

static int answer_why(struct question *question, struct error *err)
{
    const struct arguments *arguments = question->arguments;
    const struct why_question asked = {question->operands, question->count, arguments->all,
                                       slice_of(arguments->ns == NULL ? "" : arguments->ns)};
    struct why *why = why_new(&asked);
    int rc = why == NULL ? error_no_memory(err) : print_why(question, why, err);

    why_free(why);
    return rc;
}

static const char *find_why_problem(struct question *question)
{
    const struct arguments *arguments = question->arguments;

    if (arguments->operand_count == 0 && !arguments->all)
        return "give pods, or what has them, or --all";
    if (arguments->operand_count != 0 && arguments->all)
        return "pods and --all: give only one of them";
    return find_problem(question);
}

int command_why(const struct arguments *arguments, struct error *err)
{
    static const struct asker asker = {"why", KIND_POD, find_why_problem, answer_why};

    return run(&asker, arguments, err);
}
