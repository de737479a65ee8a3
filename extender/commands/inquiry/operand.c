#include "extender/commands/inquiry/operand.h"

#include "extender/report/advice_rows.h"

enum { COMMAND_BYTES_MAX = 4096 };

/* Short names; the others are the kind's own, in any case. */
static const struct {
    const char *word;
    enum kind kind;
} words[] = {{"po", KIND_POD}, {"pvc", KIND_CLAIM}, {"pvcs", KIND_CLAIM}, {"pv", KIND_VOLUME}};

/* KIND_OTHER: it is no word for a kind. */
static enum kind kind_of_word(struct slice word)
{
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
    return error_set(err, ERROR_INVALID, "%s: expected a %s", text, kind_text(wanted));
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

    if (has_ns && kind_of_word(part) != KIND_OTHER) {
        if (kind_of_word(part) != kind)
            return refuse_kind(text, rest, kind_of_word(part), kind, err);
        has_ns = take_part(&rest, &part);
    }
    *out = (struct operand){has_ns ? part : ns, rest};
    const struct object_reference reference = {.kind = kind, .ns = out->ns, .name = out->name};
    if ((has_ns && part.len == 0) || !object_reference_is_possible(&reference))
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
