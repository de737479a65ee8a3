/* The page /metrics: its families in turn, in the text format or in OpenMetrics. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "extender/serving/zpages/scrape_internal.h"

/* ---- samples ---- */

void scrape_put_count(const struct scrape *scrape, uint64_t value)
{
    buf_printf(scrape->out, "%s %llu\n", scrape->name, (unsigned long long)value);
}

void scrape_put_for(const struct scrape *scrape, const char *label, const char *text,
                    uint64_t value)
{
    buf_printf(scrape->out, "%s{%s=\"%s\"} %llu\n", scrape->name, label, text,
               (unsigned long long)value);
}

void scrape_put_pair(const struct scrape *scrape, const char *const labels[2], const char *first,
                     const char *second, uint64_t value)
{
    buf_printf(scrape->out, "%s{%s=\"%s\",%s=\"%s\"} %llu\n", scrape->name, labels[0], first,
               labels[1], second, (unsigned long long)value);
}

void scrape_put_counters(const struct scrape *scrape, const char *label, const char *const *texts,
                         const atomic_uint_fast64_t *counters, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        scrape_put_for(scrape, label, texts[i], atomic_load(&counters[i]));
}

void scrape_put_label(const struct scrape *scrape, const char *key, struct slice value)
{
    buf_printf(scrape->out, "%s=\"", key);
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '\n')
            buf_put(scrape->out, SLICE("\\n"));
        else if (value.ptr[i] == '"' || value.ptr[i] == '\\')
            buf_printf(scrape->out, "\\%c", value.ptr[i]);
        else
            buf_put(scrape->out, (struct slice){value.ptr + i, 1});
    }
    buf_put(scrape->out, SLICE("\""));
}

void scrape_put_histogram(const struct scrape *scrape, const char *label, const char *text,
                          struct histogram *histogram)
{
    uint64_t total = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double bound = histogram_bounds[i];
        total += atomic_load(&histogram->buckets[i]);
        buf_printf(scrape->out, "%s_bucket{%s=\"%s\",le=\"%g%s\"} %llu\n", scrape->name, label,
                   text, bound, bound == 1 || bound == 5 || bound == 10 ? ".0" : "",
                   (unsigned long long)total);
    }
    total += atomic_load(&histogram->buckets[HISTOGRAM_BUCKETS]);
    buf_printf(scrape->out,
               "%s_bucket{%s=\"%s\",le=\"+Inf\"} %llu\n%s_sum{%s=\"%s\"} %.9g\n"
               "%s_count{%s=\"%s\"} %llu\n",
               scrape->name, label, text, (unsigned long long)total, scrape->name, label, text,
               (double)atomic_load(&histogram->sum_ns) / 1e9, scrape->name, label, text,
               (unsigned long long)total);
}

/* ---- numbers ---- */

/* The number of a family that has one. */
static uint64_t read_number(struct state *state, enum number number, const void *at)
{
    if (number == NUMBER_COUNTER)
        return atomic_load((const atomic_uint_fast64_t *)at);
    if (number == NUMBER_GAUGE)
        return atomic_load((const atomic_uint *)at);
    SCOPED_READ_LOCK(&state->lock);
    return number == NUMBER_SIZE ? *(const size_t *)at : *(const unsigned *)at;
}

static void put_kinds(const struct scrape *scrape, const struct family *family)
{
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        const void *at = (const char *)&scrape->state->status[kind] + family->offset;
        if (state_watches(scrape->state, (enum kind)kind))
            scrape_put_for(scrape, "resource", kind_resource((enum kind)kind),
                           family->number == FLAG_OF_KIND
                               ? atomic_load((const atomic_bool *)at)
                               : atomic_load((const atomic_uint_fast64_t *)at));
    }
}

static void put_numbers(const struct scrape *scrape, const struct family *family)
{
    const void *at = (const char *)scrape->state + family->offset;

    if (family->number == NUMBER_OF_KIND || family->number == FLAG_OF_KIND)
        put_kinds(scrape, family);
    else if (family->label == NULL)
        scrape_put_count(scrape, read_number(scrape->state, family->number, at));
    else
        scrape_put_counters(scrape, family->label, family->values, at, family->count);
}

/* ---- the process: as Prometheus' client libraries do, from /proc/self ---- */

struct process_stat {
    unsigned long long user_ticks, system_ticks, start_ticks, virtual_bytes;
    long long resident_pages;
};

/* Fields 14, 15, 22, 23 and 24 of /proc/self/stat (proc(5)). Fields are counted from the end of the
 * command's name, which may contain spaces. */
static bool read_stat(struct process_stat *out)
{
    char line[1024];
    FILE *file = fopen("/proc/self/stat", "re");

    if (file == NULL)
        return false;
    size_t length = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[length] = '\0';
    char *at = strrchr(line, ')');
    unsigned long long fields[25] = {0};
    if (at == NULL)
        return false;
    at += 4; /* ") S " */
    for (int i = 4; i < 25; i++)
        fields[i] = strtoull(at, &at, 10);
    *out = (struct process_stat){fields[14], fields[15], fields[22], fields[23],
                                 (long long)fields[24]};
    return true;
}

/* When the system started, in Unix time. */
static double boot_time(void)
{
    char line[256];
    double seconds = 0;
    FILE *file = fopen("/proc/stat", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "btime ", 6) == 0)
            seconds = strtod(line + 6, NULL);
    (void)fclose(file);
    return seconds;
}

static long count_open_files(void)
{
    long count = -3; /* ., .. and the directory itself */
    DIR *directory = opendir("/proc/self/fd");

    if (directory == NULL)
        return 0;
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count;
}

static void put_gauge(struct buf *out, const char *name, const char *help, double value)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %.17g\n", name, help, name, name, value);
}

static void put_process(struct buf *out, bool is_open_metrics)
{
    struct process_stat stat = {0};
    struct rlimit limit = {0};
    double ticks = (double)sysconf(_SC_CLK_TCK);

    if (!read_stat(&stat) || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    buf_printf(out,
               "# HELP process_cpu_seconds%s Total user and system CPU time in seconds.\n"
               "# TYPE process_cpu_seconds%s counter\nprocess_cpu_seconds_total %.17g\n",
               is_open_metrics ? "" : "_total", is_open_metrics ? "" : "_total",
               (double)(stat.user_ticks + stat.system_ticks) / ticks);
    put_gauge(out, "process_open_fds", "Number of open file descriptors.",
              (double)count_open_files());
    put_gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
              (double)limit.rlim_cur);
    put_gauge(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
              (double)stat.virtual_bytes);
    put_gauge(out, "process_resident_memory_bytes", "Resident memory size in bytes.",
              (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE));
    put_gauge(out, "process_start_time_seconds",
              "Start time of the process since unix epoch in seconds.",
              boot_time() + (double)stat.start_ticks / ticks);
}

/* ---- the page ---- */

static void begin_family(struct scrape *scrape, const struct family *family)
{
    bool is_counter = strcmp(family->type, "counter") == 0;
    const char *suffix = is_counter && !scrape->is_open_metrics ? "_total" : "";

    if (!scrape->has_begun) {
        buf_printf(scrape->out, "# HELP claimguard_%s%s %s\n# TYPE claimguard_%s%s %s\n",
                   family->name, suffix, family->help, family->name, suffix, family->type);
        scrape->scan = (struct scan){.from = 0};
    }
    scrape->has_begun = true;
    (void)snprintf(scrape->name, sizeof scrape->name, "claimguard_%s%s", family->name,
                   is_counter ? "_total" : "");
}

static bool next(struct pieces *pieces, struct buf *out)
{
    struct scrape *scrape = (struct scrape *)pieces;

    scrape->out = out;
    if (scrape->family < scrape_family_count) {
        const struct family *family = &scrape_families[scrape->family];
        begin_family(scrape, family);
        scrape->has_more = false;
        if (family->write != NULL)
            family->write(scrape);
        else
            put_numbers(scrape, family);
        scrape->family += !scrape->has_more;
        scrape->has_begun = scrape->has_more;
        return true;
    }
    put_process(out, scrape->is_open_metrics);
    if (scrape->is_open_metrics)
        buf_put(out, SLICE("# EOF\n"));
    return false;
}

struct pieces *scrape_new(struct state *state, bool is_open_metrics)
{
    struct scrape *scrape = calloc(1, sizeof *scrape);

    if (scrape == NULL)
        return NULL;
    scrape->pieces = (struct pieces){.next = next};
    scrape->state = state;
    scrape->is_open_metrics = is_open_metrics;
    return &scrape->pieces;
}
