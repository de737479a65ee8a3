#include "extender/commands/audit/rendering.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/base/scope.h"
#include "config/yaml_node.h"

enum {
    PROGRAMS_MAX = 2,
    WORDS_MAX = 6,
    COMPLAINT_BYTES = 16 * 1024,
    COMPLAINT_SHOWN = 400, /* kustomize says at the end what is wrong, helm at the beginning */
    COMPLAINT_BEGIN = 120,
    KIND_LINE_BYTES = 80,
    NAME_BYTES_MAX = 4096,
    FILE_BYTES_MAX = 16 * 1024 * 1024, /* of a file that makes a folder one, with its nodes */
};

static const struct renderer {
    const char *file;                       /* that makes a folder one */
    const char *what;                       /* for people */
    const char *part_key, *part;            /* in the file of one that only others use */
    const char *missing;                    /* the programs */
    const char *programs[PROGRAMS_MAX + 1]; /* the first one that is there is used */
    const char *verbs[PROGRAMS_MAX];
    bool is_chart;
} renderers[] = {
#define KUSTOMIZATION(file_) \
    { \
        (file_), "a kustomization", "kind", "Component", "neither kustomize nor kubectl is", \
            {"kustomize", "kubectl"}, {"build", "kustomize"}, false \
    }
    {"Chart.yaml", "a chart", "type", "library", "helm is not", {"helm"}, {"template"}, true},
    KUSTOMIZATION("kustomization.yaml"),
    KUSTOMIZATION("kustomization.yml"),
    KUSTOMIZATION("Kustomization"),
#undef KUSTOMIZATION
};

static const char *join(struct arena *arena, const char *folder, const char *file)
{
    return arena_printf(arena, "%s/%s", folder, file).ptr;
}

const struct renderer *renderer_of(const char *folder)
{
    for (size_t i = 0; i < sizeof renderers / sizeof *renderers; i++) {
        char *path = NULL;
        bool is_there =
            asprintf(&path, "%s/%s", folder, renderers[i].file) >= 0 && access(path, F_OK) == 0;
        free(path);
        if (is_there)
            return &renderers[i];
    }
    return NULL;
}

bool renderer_is_chart(const struct renderer *renderer)
{
    return renderer->is_chart;
}

bool renderer_has_part(const struct renderer *renderer, const char *name)
{
    static const char *const parts[] = {"templates", "charts", "crds", "files"};

    for (size_t i = 0; renderer->is_chart && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i], name) == 0)
            return true;
    return false;
}

const char *renderer_file(const struct renderer *renderer)
{
    return renderer->file;
}

bool renderer_is_file(const char *name)
{
    for (size_t i = 0; i < sizeof renderers / sizeof *renderers; i++)
        if (strcmp(renderers[i].file, name) == 0)
            return true;
    return false;
}

struct naming {
    const char *folder;
    void (*take)(void *context, const struct stat *used);
    void *context;
};

/* "file", or "name=file" as a generator's. */
static void take_named(const struct naming *use, const struct yaml_node *node)
{
    const char *equals = memrchr(node->text.ptr, '=', node->text.len);
    const char *name = equals == NULL ? node->text.ptr : equals + 1;
    size_t bytes = node->text.len - (size_t)(name - node->text.ptr);
    bool may_be_folder = slice_equal(node->key, SLICE("resources")) ||
                         slice_equal(node->key, SLICE("bases")) ||
                         slice_equal(node->key, SLICE("components")) ||
                         slice_equal(node->key, SLICE("generators")) ||
                         slice_equal(node->key, SLICE("transformers")) ||
                         slice_equal(node->key, SLICE("validators"));
    struct stat status;
    char *path = NULL;

    if (bytes == 0 || bytes > NAME_BYTES_MAX || memchr(name, '\n', bytes) != NULL ||
        asprintf(&path, "%s/%.*s", use->folder, (int)bytes, name) < 0)
        return;
    if (stat(path, &status) == 0 && (may_be_folder || !S_ISDIR(status.st_mode)))
        use->take(use->context, &status);
    free(path);
}

static void take_all_named(const struct naming *use, const struct yaml_node *root)
{
    const struct yaml_node *levels[YAML_DEPTH_MAX + 1] = {root->first};

    for (int depth = 0; depth >= 0;) {
        const struct yaml_node *at = levels[depth];
        if (at == NULL) {
            depth--;
            continue;
        }
        levels[depth] = at->next;
        if (at->type == YAML_SCALAR && at->text.len != 0)
            take_named(use, at);
        else if (at->type != YAML_SCALAR && depth < YAML_DEPTH_MAX)
            levels[++depth] = at->first;
    }
}

/* NULL: it cannot be read. */
static const struct yaml_node *load(const struct renderer *renderer, const char *folder,
                                    struct arena *arena)
{
    const char *path = join(arena, folder, renderer->file);
    struct yaml_node *root = NULL;
    struct error err;

    return path == NULL || yaml_load(&root, path, arena, &err) < 0 ? NULL : root;
}

bool renderer_find_used(const struct renderer *renderer, const char *folder,
                        void (*take)(void *context, const struct stat *used), void *context)
{
    SCOPED_ARENA(arena, FILE_BYTES_MAX);
    const struct yaml_node *root = load(renderer, folder, &arena);

    if (root != NULL)
        take_all_named(&(struct naming){folder, take, context}, root);
    return root != NULL;
}

bool renderer_only_lists(const struct renderer *renderer, const char *folder)
{
    static const char *const keys[] = {"apiVersion",
                                       "buildMetadata",
                                       "commonAnnotations",
                                       "commonLabels",
                                       "configMapGenerator",
                                       "generatorOptions",
                                       "images",
                                       "kind",
                                       "labels",
                                       "metadata",
                                       "namespace",
                                       "resources",
                                       "secretGenerator",
                                       "sortOptions"};
    SCOPED_ARENA(arena, FILE_BYTES_MAX);
    const struct yaml_node *root = load(renderer, folder, &arena);
    bool is_known = root != NULL;

    for (const struct yaml_node *at = is_known ? root->first : NULL; at != NULL && is_known;
         at = at->next) {
        is_known = false;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            is_known = is_known || slice_equal(at->key, slice_of(keys[i]));
    }
    return is_known;
}

/* Whether only others use it. False also if its file cannot be read, which who renders it says. */
static bool is_part(const struct rendering *rendering)
{
    SCOPED_ARENA(arena, FILE_BYTES_MAX);
    const struct yaml_node *root = load(rendering->renderer, rendering->folder, &arena);

    if (root == NULL)
        return false;
    for (const struct yaml_node *at = root->first; at != NULL; at = at->next)
        if (slice_equal(at->key, slice_of(rendering->renderer->part_key)) &&
            slice_equal(at->text, slice_of(rendering->renderer->part)))
            return true;
    return false;
}

/* ---- programs ---- */

/* Starts the program. Returns 0, or an errno. */
static int start(char *words[], const struct rendering *rendering, FILE *complaints, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);

    if (code != 0)
        return code;
    code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, fileno(rendering->output), STDOUT_FILENO);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, fileno(complaints), STDERR_FILENO);
    if (code == 0)
        code = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* What a line says behind the mark of an error; NULL: it has none. kubectl writes `err="reason"`,
 * or `err=<` and the reason in the lines below, up to ` >`; others, "Error: reason". */
static const char *error_of(const char *line)
{
    static const char *const marks[] = {"\"command failed\" err=<", "\"command failed\" err=\"",
                                        "rror: "};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *mark = strstr(line, marks[i]);
        if (mark != NULL)
            return mark + strlen(marks[i]);
    }
    return NULL;
}

/* A text that grows, up to its end. */
struct complaint {
    char text[COMPLAINT_BYTES];
    size_t used;
};

static void add_said(struct complaint *complaint, const char *said)
{
    size_t bytes = strcspn(said += strspn(said, " \t"), "\r\n");
    size_t room = sizeof complaint->text - 1;

    while (bytes != 0 && strchr(" \"", said[bytes - 1]) != NULL)
        bytes--;
    if (bytes == 0 || complaint->used + 1 >= room)
        return;
    if (complaint->used != 0)
        complaint->text[complaint->used++] = ' ';
    bytes = bytes < room - complaint->used ? bytes : room - complaint->used;
    memcpy(complaint->text + complaint->used, said, bytes);
    complaint->used += bytes;
}

/* What they say: the error and what follows up to an empty line, as one line; helm's reason is in
 * the lines that follow. Without an error, the first line that is no warning. */
static int complain(const struct rendering *rendering, FILE *complaints, struct error *err)
{
    struct complaint complaint = {.used = 0};
    char *line = NULL;
    size_t line_bytes = 0;
    bool is_error = false;

    rewind(complaints);
    while (getline(&line, &line_bytes, complaints) > 0) {
        const char *error = is_error ? NULL : error_of(line);
        bool is_end = line[strspn(line, " \t\r\n>")] == '\0';
        if (is_error && is_end)
            break;
        if (error == NULL && !is_error && (complaint.used != 0 || line[0] == '#'))
            continue;
        if (error != NULL)
            complaint.used = 0;
        is_error = is_error || error != NULL;
        add_said(&complaint, error != NULL ? error : line);
    }
    free(line);
    complaint.text[complaint.used] = '\0';
    if (complaint.used <= COMPLAINT_SHOWN)
        return error_set(err, ERROR_INVALID, "%s: %s", rendering->command,
                         complaint.used == 0 ? "it has failed" : complaint.text);
    const char *end = complaint.text + complaint.used - (COMPLAINT_SHOWN - COMPLAINT_BEGIN);
    return error_set(err, ERROR_INVALID, "%s: %.*s ... %s", rendering->command, COMPLAINT_BEGIN,
                     complaint.text, end);
}

/* Runs the program, and waits for it. */
static int run(char *words[], const struct rendering *rendering, struct error *err)
{
    FILE *complaints = tmpfile();
    pid_t pid;
    int status = 0, rc = 0;

    if (complaints == NULL)
        return error_system(err, errno, "/tmp");
    int code = start(words, rendering, complaints, &pid);
    if (code != 0)
        rc = error_system(err, code, "%s", rendering->command);
    while (code == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (code == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        rc = complain(rendering, complaints, err);
    (void)fclose(complaints); /* a temporary file */
    /* a folder of PATH that may not be read, or is none, hides no program in the others */
    return code == ENOENT || code == EACCES || code == ENOTDIR ? ERROR_NOT_FOUND : rc;
}

/* kustomize names the option that it wants, which runs helm. */
static int refuse_helm(const struct rendering *rendering, struct error *err)
{
    return error_set(
        err, ERROR_INVALID,
        "%s: a kustomization with helmCharts; run: %s --enable-helm | claimguard audit -",
        rendering->folder, rendering->command);
}

static int refuse(const struct rendering *rendering, struct error *err)
{
    const struct renderer *renderer = rendering->renderer;

    return error_set(err, ERROR_NOT_FOUND,
                     "%s: %s that was not rendered, as %s here; run: %s | claimguard audit -",
                     rendering->folder, renderer->what, renderer->missing, rendering->command);
}

/* Runs the first of the programs that is there. */
static int run_one(struct rendering *rendering, const char *ns, struct error *err)
{
    const struct renderer *renderer = rendering->renderer;
    int rc = ERROR_NOT_FOUND;

    for (size_t i = 0; rc == ERROR_NOT_FOUND && renderer->programs[i] != NULL; i++) {
        const char *words[WORDS_MAX] = {renderer->programs[i], renderer->verbs[i],
                                        rendering->folder};
        if (ns != NULL && renderer->is_chart) {
            words[3] = "--namespace";
            words[4] = ns;
        }
        rendering->command =
            arena_printf(rendering->arena, "%s %s %s", words[0], words[1], words[2]).ptr;
        if (rendering->command == NULL)
            return error_no_memory(err);
        rc = run((char **)words, rendering, err);
    }
    if (rc == ERROR_INVALID && slice_has(slice_of(err->message), SLICE("--enable-helm")))
        return refuse_helm(rendering, err);
    return rc == ERROR_NOT_FOUND ? refuse(rendering, err) : rc;
}

/* ---- lines ---- */

/* Whether the line has that text alone. */
static bool is_line(struct slice line, const char *text)
{
    while (line.len != 0 && strchr(" \t\r\n", line.ptr[line.len - 1]) != NULL)
        line.len--;
    while (line.len != 0 && *line.ptr == ' ')
        line = (struct slice){line.ptr + 1, line.len - 1};
    return slice_equal(line, slice_of(text));
}

/* How many lines of the file have that text alone, and the number of the last one. Negative: there
 * is no such file. */
static int count_lines(const char *path, const char *text, uint32_t *last)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t line_bytes = 0;
    int count = 0;

    if (file == NULL)
        return -1;
    for (uint32_t number = 1; getline(&line, &line_bytes, file) > 0; number++)
        if (is_line(slice_of(line), text)) {
            *last = number;
            count++;
        }
    free(line);
    (void)fclose(file); /* read only: nothing is lost */
    return count;
}

int rendering_make(struct rendering *rendering, const struct renderer *renderer, const char *folder,
                   struct slice ns, struct arena *arena, struct error *err)
{
    *rendering = (struct rendering){.renderer = renderer,
                                    .folder = folder,
                                    .arena = arena,
                                    .file = join(arena, folder, renderer->file)};
    if (rendering->file == NULL)
        return error_no_memory(err);
    if (is_part(rendering))
        return 0;
    rendering->output = tmpfile();
    if (rendering->output == NULL)
        return error_system(err, errno, "/tmp");
    if (run_one(rendering, ns.len == 0 ? NULL : ns.ptr, err) < 0)
        return err->code;
    rewind(rendering->output);
    rendering->path = arena_printf(arena, "/dev/fd/%d", fileno(rendering->output)).ptr;
    return rendering->path == NULL ? error_no_memory(err) : 1;
}

void rendering_dispose(struct rendering *rendering)
{
    if (rendering->output != NULL)
        (void)fclose(rendering->output); /* a temporary file */
    free(rendering->line);
}

/* ---- places ---- */

/* helm prints "# Source: CHART/templates/web.yaml" before what that file makes. */
static void note_source(struct rendering *rendering)
{
    static const char mark[] = "# Source: ";
    char *line = rendering->line;
    const char *slash = strncmp(line, mark, strlen(mark)) == 0 ? strchr(line, '/') : NULL;

    if (slash == NULL || !rendering->renderer->is_chart)
        return;
    line[strcspn(line, "\r\n")] = '\0';
    rendering->source = join(rendering->arena, rendering->folder, slash + 1);
}

struct spot rendering_spot(struct rendering *rendering, size_t line, const char *kind)
{
    struct spot spot = {rendering->file, 1, 1};
    char text[KIND_LINE_BYTES];
    uint32_t found;

    while (rendering->line_number < line &&
           getline(&rendering->line, &rendering->line_bytes, rendering->output) > 0) {
        rendering->line_number++;
        note_source(rendering);
    }
    (void)snprintf(text, sizeof text, "kind: %s", kind);
    if (rendering->source == NULL)
        return spot;
    int count = count_lines(rendering->source, text, &found);
    if (count >= 0)
        spot = (struct spot){rendering->source, count == 1 ? found : 1, 1};
    return spot;
}
