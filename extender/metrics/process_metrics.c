#include "extender/metrics/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

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

static void put(struct buf *out, const char *name, const char *help, double value)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %.17g\n", name, help, name, name, value);
}

void process_metrics_write(struct buf *out, bool is_open_metrics)
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
    put(out, "process_open_fds", "Number of open file descriptors.", (double)count_open_files());
    put(out, "process_max_fds", "Maximum number of open file descriptors.", (double)limit.rlim_cur);
    put(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
        (double)stat.virtual_bytes);
    put(out, "process_resident_memory_bytes", "Resident memory size in bytes.",
        (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE));
    put(out, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        boot_time() + (double)stat.start_ticks / ticks);
}
