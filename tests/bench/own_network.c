#include "own_network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "programs.h"

/* A new network has its loopback switched off. */
static bool start_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    bool is_read = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    bool is_up = is_read && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    (void)close(fd);
    return is_up;
}

/* Of this network alone. */
static bool use_reno(void)
{
    static const char name[] = "reno";
    int fd = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);

    bool is_set = write(fd, name, sizeof name - 1) == (ssize_t)sizeof name - 1;
    (void)close(fd);
    return is_set;
}

const char *bench_own_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return "TCP uses what this machine uses: with BBR, answers of 640 KiB take two and a half\n"
               "times as long on some connections. Root measures in a network of its own, with "
               "Reno.";
    if (!start_loopback())
        bench_die("cannot set up a network of its own");
    return use_reno() ? "TCP uses Reno."
                      : "TCP uses what this machine uses: Reno cannot be chosen (/proc/sys is "
                        "read-only, or there\nis none).";
}
