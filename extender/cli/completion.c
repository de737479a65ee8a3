/*
 * Completion of a command line in a shell.
 *
 * The scripts of `claimguard completion` call `claimguard __complete WORDS...`, which prints what
 * may stand for the last of the words: a line each, with its description behind a tab, and a last
 * line: ":0" if it may also be a file's name, ":4" if not. This is the protocol of cobra
 * (github.com/spf13/cobra), so that kubectl completes its plug-in `kubectl claimguard`, too, by
 * kubectl_complete-claimguard.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/client/kubeconfig.h"
#include "config/base/text.h"
#include "extender/cli/commands.h"
#include "extender/commands/audit/audit_rules.h"
#include "extender/commands/doctor/doctor_rules.h"
#include "extender/commands/inquiry/inquiry.h"

enum {
    CONTEXTS_MAX = 1000,
    CONTEXTS_BYTES_MAX = 16 << 20,
    NAME_BYTES_MAX = 512,
    NAMES_SECONDS_MAX = 3
};

struct completion {
    const struct command *command;
    const char *const *words; /* behind the command, without the last */
    size_t count;
    struct slice before; /* what the shell wants in front of each word: "--output=" */
    const char *typed;   /* the beginning of the word */
    bool takes_files;
};

static void offer(const struct completion *completion, const char *word, const char *help)
{
    if (strncmp(word, completion->typed, strlen(completion->typed)) == 0)
        (void)printf("%.*s%s%s%s\n", SLICE_ARG(completion->before), word,
                     help[0] == '\0' ? "" : "\t", help);
}

/* ---- names ---- */

/* The value that was given for an option; NULL: none. */
static const char *value_of(const struct completion *completion, const char *name)
{
    const struct flag *flag = completion->command->flags;
    const char *value = NULL;

    while (flag->name != NULL && strcmp(flag->name, name) != 0)
        flag++;
    for (size_t i = 0; flag->name != NULL && i < completion->count; i++) {
        const char *word = completion->words[i];
        size_t len = strlen(name);
        bool is_short = word[0] == '-' && flag->letter != '\0' && word[1] == flag->letter;
        bool is_long = strncmp(word, "--", 2) == 0 && strncmp(word + 2, name, len) == 0;
        if (is_long && word[2 + len] == '=')
            value = word + 2 + len + 1;
        else if (is_short && word[2] != '\0')
            value = word + 2;
        else if ((is_short || (is_long && word[2 + len] == '\0')) && i + 1 < completion->count)
            value = completion->words[i + 1];
    }
    return value;
}

/* Whether the word stands on the command line already. */
static bool is_there(const struct completion *completion, const char *word)
{
    for (size_t i = 0; i < completion->count; i++)
        if (strcmp(completion->words[i], word) == 0)
            return true;
    return false;
}

static bool has_flag(const struct command *command, const char *name)
{
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++)
        if (strcmp(flag->name, name) == 0)
            return true;
    return false;
}

/* A name from a file, or from a cluster. */
static void offer_name(const struct completion *completion, struct slice ns, struct slice name)
{
    char word[NAME_BYTES_MAX];
    int len = snprintf(word, sizeof word, "%.*s%s%.*s", SLICE_ARG(ns), ns.len == 0 ? "" : "/",
                       SLICE_ARG(name));

    make_printable(word);
    if (len < NAME_BYTES_MAX && !is_there(completion, word))
        offer(completion, word, "");
}

struct object_names {
    const struct completion *completion;
    enum kind kind;
    const char *ns;    /* only of this namespace, and without it; NULL: of all */
    struct names seen; /* namespaces that were offered, if these are asked for */
};

static int offer_object(void *context, const struct source_text *text, const struct object *object,
                        struct error *err)
{
    const struct object_names *names = context;

    (void)text;
    (void)err;
    if (object == NULL || object->kind != names->kind ||
        (names->ns != NULL && !slice_equal(object->meta.ns, slice_of(names->ns))))
        return 0;
    offer_name(names->completion, names->ns == NULL ? object->meta.ns : SLICE(""),
               object->meta.name);
    return 0;
}

static int offer_namespace(void *context, const struct source_text *text,
                           const struct object *object, struct error *err)
{
    struct object_names *names = context;
    bool failed = false;

    (void)text;
    (void)err;
    if (object == NULL || object->kind != names->kind ||
        names_find(&names->seen, object->meta.ns) != NULL)
        return 0;
    (void)names_take(&names->seen, object->meta.ns, &failed);
    offer_name(names->completion, SLICE(""), object->meta.ns);
    return 0;
}

/* The namespace that the command looks in; NULL: in all. */
static const char *namespace_of(const struct completion *completion, const struct inquiry *inquiry)
{
    const char *given = value_of(completion, "namespace");
    bool wants_all = !has_flag(completion->command, "namespace") ||
                     strchr(completion->typed, '/') != NULL || is_there(completion, "-A") ||
                     is_there(completion, "--all-namespaces");

    if (wants_all || (given == NULL && inquiry->snapshot != NULL))
        return NULL;
    return given != NULL ? given : inquiry->default_ns;
}

/* Objects of the snapshot that was given, else of the cluster if the command can ask one. If
 * that takes too long, the shell gets no names. */
static void offer_from_cluster(const struct completion *completion, enum kind kind,
                               load_text_sink *sink)
{
    struct inquiry_origin origin = {.snapshot = value_of(completion, "snapshot"),
                                    .kubeconfig = value_of(completion, "kubeconfig"),
                                    .context = value_of(completion, "context")};
    struct pool pool = {.regions = NULL};
    struct object_names names = {.completion = completion, .kind = kind, .seen.table.pool = &pool};
    struct inquiry_wish wish = {.kinds = 1U << kind, .text_sink = sink, .context = &names};
    struct inquiry inquiry;
    struct error err = {0};

    if (origin.snapshot == NULL ? !has_flag(completion->command, "kubeconfig")
                                : strcmp(origin.snapshot, "-") == 0)
        return;
    (void)alarm(NAMES_SECONDS_MAX);
    if (inquiry_open(&inquiry, &origin, &err) == 0) {
        names.ns = sink == offer_object ? namespace_of(completion, &inquiry) : NULL;
        wish.ns = slice_of(names.ns);
        (void)inquiry_read(&inquiry, &wish, &err);
    }
    inquiry_close(&inquiry);
    names_dispose(&names.seen);
    pool_dispose(&pool);
}

/* prefix: "pvc/", which may be in front of the name. */
static void offer_objects(struct completion *completion, enum kind kind, struct slice prefix)
{
    if (strncmp(completion->typed, prefix.ptr, prefix.len) == 0) {
        if (completion->before.len == 0)
            completion->before.ptr = completion->typed;
        completion->before.len += prefix.len;
        completion->typed += prefix.len;
    }
    offer_from_cluster(completion, kind, offer_object);
}

static void offer_contexts(const struct completion *completion)
{
    struct slice *names;
    struct arena arena;

    arena_init(&arena, CONTEXTS_BYTES_MAX);
    names = arena_alloc(&arena, CONTEXTS_MAX * sizeof *names);
    size_t count = names == NULL ? 0
                                 : kubeconfig_contexts(value_of(completion, "kubeconfig"), &arena,
                                                       names, CONTEXTS_MAX);
    for (size_t i = 0; i < count; i++)
        offer_name(completion, SLICE(""), names[i]);
    arena_dispose(&arena);
}

/* ---- what may stand there ---- */

static void offer_commands(const struct completion *completion)
{
    for (const struct command *command = command_table; command->name != NULL; command++)
        offer(completion, command->name, command->summary);
}

static void offer_words(const struct completion *completion, const char *words)
{
    char word[64];

    for (size_t len; *words != '\0'; words += len + strspn(words + len, " ")) {
        len = strcspn(words, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)len, words);
        offer(completion, word, "");
    }
}

static void offer_rules(const struct completion *completion, const struct rule *rules)
{
    for (; rules->code != NULL; rules++)
        offer(completion, rules->code, rules->title);
}

static void offer_values(struct completion *completion, const char *values)
{
    if (values == NULL)
        return;
    if (values[0] != '<') {
        offer_words(completion, values);
        return;
    }
    if (strcmp(values, VALUES_COMMANDS) == 0)
        offer_commands(completion);
    else if (strcmp(values, VALUES_CONTEXTS) == 0)
        offer_contexts(completion);
    else if (strcmp(values, VALUES_PODS) == 0 || strcmp(values, VALUES_PODS_OR_FILES) == 0)
        offer_objects(completion, KIND_POD, SLICE("pod/"));
    else if (strcmp(values, VALUES_CLAIMS) == 0)
        offer_objects(completion, KIND_CLAIM, SLICE("pvc/"));
    else if (strcmp(values, VALUES_NODES) == 0)
        offer_objects(completion, KIND_NODE, SLICE("node/"));
    else if (strcmp(values, VALUES_NAMESPACES) == 0)
        offer_from_cluster(completion, KIND_CLAIM, offer_namespace);
    else if (strcmp(values, VALUES_AUDIT_CODES) == 0 || strcmp(values, VALUES_AUDIT_RULES) == 0)
        offer_rules(completion, audit_rules);
    else if (strcmp(values, VALUES_DOCTOR_RULES) == 0)
        offer_rules(completion, doctor_rules);
    if (strcmp(values, VALUES_AUDIT_RULES) == 0 || strcmp(values, VALUES_DOCTOR_RULES) == 0)
        offer(completion, "all", "");
    completion->takes_files = strcmp(values, VALUES_FILES) == 0 ||
                              strcmp(values, VALUES_FOLDERS) == 0 ||
                              strcmp(values, VALUES_PODS_OR_FILES) == 0;
}

static void offer_flags(const struct completion *completion)
{
    char word[64];

    for (const struct flag *flag = completion->command->flags; flag->name != NULL; flag++) {
        (void)snprintf(word, sizeof word, "--%s", flag->name);
        offer(completion, word, flag->help);
    }
}

/* The option that the word before the last is, if its value comes next. */
static const struct flag *awaiting(const struct completion *completion)
{
    const char *word = completion->count == 0 ? "" : completion->words[completion->count - 1];

    for (const struct flag *flag = completion->command->flags; flag->name != NULL; flag++) {
        bool is_long = strncmp(word, "--", 2) == 0 && strcmp(word + 2, flag->name) == 0;
        bool is_short =
            word[0] == '-' && word[1] == flag->letter && word[1] != '\0' && word[2] == '\0';
        if (flag->type != FLAG_SWITCH && (is_long || is_short))
            return flag;
    }
    return NULL;
}

/* --output=ta: the word is what is behind the equals sign. */
static void offer_behind_equals(struct completion *completion)
{
    const char *name = completion->typed + 2;
    size_t len = strcspn(name, "=");

    completion->before = (struct slice){completion->typed, 2 + len + 1};
    completion->typed += completion->before.len;
    for (const struct flag *flag = completion->command->flags; flag->name != NULL; flag++)
        if (strlen(flag->name) == len && strncmp(name, flag->name, len) == 0)
            offer_values(completion, flag->values);
}

static void complete(struct completion *completion)
{
    const struct flag *flag = awaiting(completion);

    if (flag != NULL)
        offer_values(completion, flag->values);
    else if (strncmp(completion->typed, "--", 2) == 0 && strchr(completion->typed, '=') != NULL)
        offer_behind_equals(completion);
    else if (completion->typed[0] == '-')
        offer_flags(completion);
    else
        offer_values(completion, completion->command->values);
}

int complete_words(const char *const *words, size_t count)
{
    static const struct flag no_flags[] = {{.name = NULL}};
    static const struct command help = {
        .name = "help", .flags = no_flags, .values = VALUES_COMMANDS};
    struct completion completion = {.before = SLICE(""),
                                    .typed = count == 0 ? "" : words[count - 1]};

    if (count > 1) {
        bool is_help = strcmp(words[0], "help") == 0;
        completion.command = is_help ? &help : command_find(words[0]);
        completion.words = words + 1;
        completion.count = count - 2;
    }
    if (count <= 1)
        offer_commands(&completion);
    else if (completion.command != NULL)
        complete(&completion);
    (void)printf(":%d\n", completion.takes_files ? 0 : 4);
    return EXIT_DONE;
}

/* ---- the scripts ---- */

/* The scripts know no command and no option: they ask `claimguard __complete`. */
static const struct script {
    const char *shell, *text;
} scripts[] = {
    {"bash",
     "# bash completion of claimguard\n"
     "_claimguard() {\n"
     "    local -a words=()\n"
     "    local i line before last=:4\n"
     "    # bash makes words of an equals sign and of a colon: they are parts of one word\n"
     "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
     "        if ((i > 1)) && [[ ${COMP_WORDS[i]} == [=:] || ${COMP_WORDS[i - 1]} == [=:] ]]; "
     "then\n"
     "            words[${#words[@]} - 1]+=${COMP_WORDS[i]}\n"
     "        else\n"
     "            words+=(\"${COMP_WORDS[i]}\")\n"
     "        fi\n"
     "    done\n"
     "    before=${words[${#words[@]} - 1]%\"${COMP_WORDS[COMP_CWORD]#[=:]}\"}\n"
     "    COMPREPLY=()\n"
     "    while IFS= read -r line; do\n"
     "        last=$line\n"
     "        line=${line%%$'\\t'*}\n"
     "        [[ $last == :[0-9] ]] || COMPREPLY+=(\"$(printf %q \"${line#\"$before\"}\")\")\n"
     "    done < <(\"$1\" __complete \"${words[@]}\" 2>/dev/null)\n"
     "    [[ $last == :4 ]] || compopt -o default 2>/dev/null\n"
     "}\n"
     "complete -F _claimguard claimguard\n"},
    {"zsh",
     "#compdef claimguard\n"
     "_claimguard() {\n"
     "    local -a lines names\n"
     "    local line\n"
     "    lines=(\"${(@f)$(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
     "    for line in \"${(@)lines[1,-2]}\"; do\n"
     "        line=${line//:/\\\\:}\n"
     "        names+=(\"${line/$'\\t'/:}\")\n"
     "    done\n"
     "    _describe claimguard names\n"
     "    [[ ${lines[-1]} == :4 ]] || _files\n"
     "}\n"
     "compdef _claimguard claimguard\n"},
    {"fish", "# fish completion of claimguard\n"
             "function __claimguard_complete\n"
             "    set -l words (commandline -opc)\n"
             "    set -l typed (commandline -ct)\n"
             "    set -l lines ($words[1] __complete $words[2..-1] \"$typed\" 2>/dev/null)\n"
             "    string match -v -r '^:\\d$' -- $lines\n"
             "    if test \"$lines[-1]\" != ':4'\n"
             "        __fish_complete_path (string replace -r -- '^--[^=]*=' '' \"$typed\")\n"
             "    end\n"
             "end\n"
             "complete -c claimguard -f -a '(__claimguard_complete)'\n"},
};

int command_completion(const struct arguments *arguments, struct error *err)
{
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(arguments->operand, scripts[i].shell) == 0) {
            (void)fputs(scripts[i].text, stdout);
            return EXIT_DONE;
        }
    return error_set(err, ERROR_INVALID, "completion: %s is not bash, zsh or fish",
                     arguments->operand);
}
