#include "extender/commands/inquiry/operand.h"

#include "extender/report/advice_rows.h"

enum { COMMAND_BYTES_MAX = 4096 };

/* Short names; the others are the kind's own, in any case. */
static const struct {
    const char *word;
    enum kind kind;
} words[] = {{"po", KIND_POD},           {"pvc", KIND_CLAIM},
             {"pvcs", KIND_CLAIM},       {"pv", KIND_VOLUME},
             {"no", KIND_NODE},          {"deploy", KIND_DEPLOYMENT},
             {"sts", KIND_STATEFUL_SET}, {"ds", KIND_DAEMON_SET},
             {"rs", KIND_REPLICA_SET},   {"rc", KIND_REPLICATION_CONTROLLER},
             {"job", KIND_JOB},          {"cj", KIND_CRON_JOB}};

/* KIND_OTHER: it is no word for a kind. kubectl also takes "deployment.apps". */
static enum kind kind_of_word(struct slice text)
{
    struct slice word = slice_cut(&text, '.');

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        enum kind kind = words[i].kind;
        if (slice_equal_fold(word, slice_of(words[i].word)) ||
            slice_equal_fold(word, slice_of(kind_text(kind))) ||
            slice_equal_fold(word, slice_of(kind_resource(kind))))
            return kind;
    }
    return KIND_OTHER;
}

/* Removes what is before the first slash from *rest. False: there is no slash. */
static bool take_part(struct slice *rest, struct slice *part)
{
    struct slice left = *rest, first = slice_cut(&left, '/');

    if (left.ptr == NULL)
        return false;
    *part = first;
    *rest = left;
    return true;
}

static int refuse_volume(const char *text, struct slice name, struct error *err)
{
    struct buf command;

    buf_init(&command, COMMAND_BYTES_MAX);
    bool is_plain = advice_command_text(&command, ADVICE_SEE_CLAIM_OF_VOLUME,
                                        &(const struct advice_words){.name = name});
    (void)error_set(err, ERROR_INVALID, "%s: who is asked about claims; that of a volume%s%s", text,
                    is_plain ? ": " : " is in its claimRef", is_plain ? buf_text(&command) : "");
    buf_dispose(&command);
    return err->code;
}

/* What to ask instead. */
static int refuse_kind(const char *text, struct slice name, enum kind given, enum kind wanted,
                       struct error *err)
{
    if (wanted == KIND_CLAIM && given == KIND_POD)
        return error_set(err, ERROR_INVALID,
                         "%s: who is asked about claims; of a pod: claimguard "
                         "why %.*s",
                         text, SLICE_ARG(name));
    if (wanted == KIND_CLAIM && given == KIND_VOLUME)
        return refuse_volume(text, name, err);
    return wanted == KIND_CLAIM
               ? error_set(err, ERROR_INVALID, "%s: expected a claim", text)
               : error_set(err, ERROR_INVALID,
                           "%s: expected a pod, a claim, a node, or what creates pods", text);
}

bool operand_is_owner(const struct operand *operand)
{
    return operand->kind >= KIND_DEPLOYMENT && operand->kind <= KIND_CRON_JOB;
}

/* Whether a command that asks about `wanted` takes the operand. */
static bool is_taken(const struct operand *operand, enum kind wanted)
{
    return operand->kind == wanted ||
           (wanted == KIND_POD && (operand->kind == KIND_CLAIM || operand->kind == KIND_NODE ||
                                   operand_is_owner(operand)));
}

bool operand_is_kind_word(const struct operand *operand)
{
    return kind_of_word(operand->name) != KIND_OTHER;
}

int operand_parse(struct operand *out, const char *text, enum kind kind, struct slice ns,
                  struct error *err)
{
    struct slice rest = slice_of(text), part;
    bool has_ns = take_part(&rest, &part);

    *out = (struct operand){.kind = kind};
    if (has_ns && kind_of_word(part) != KIND_OTHER) {
        out->kind = kind_of_word(part);
        if (!is_taken(out, kind))
            return refuse_kind(text, rest, out->kind, kind, err);
        has_ns = take_part(&rest, &part);
    }
    out->ns = out->kind == KIND_NODE ? SLICE("") : has_ns ? part : ns;
    out->name = rest;
    const struct object_reference reference = {.kind = kind, .ns = out->ns, .name = out->name};
    if ((has_ns && (part.len == 0 || out->kind == KIND_NODE)) ||
        !object_reference_is_possible(&reference))
        return error_set(err, ERROR_INVALID, "%s: expected NAME, NAMESPACE/NAME or %s/NAME", text,
                         kind == KIND_POD ? "pod" : "pvc");
    return 0;
}

bool operand_is(const struct operand *operand, struct slice ns, struct slice name)
{
    return slice_equal(operand->name, name) &&
           (operand->ns.len == 0 || slice_equal(operand->ns, ns));
}

struct slice operands_namespace(const struct operand *operands, size_t count)
{
    struct slice ns = count == 0 ? SLICE("") : operands[0].ns;

    for (size_t i = 1; i < count; i++)
        if (!slice_equal(operands[i].ns, ns))
            return SLICE("");
    return ns;
}
