#include <fcntl.h>
#include <unistd.h>

#include "extender/cli/commands.h"

/* Opens standard files that are closed. Otherwise the next file or socket would get their number,
 * and what is printed. Standard output is opened for reading only, so that printing fails. */
static void keep_standard_files(void)
{
    static const int flags[] = {O_RDONLY, O_RDONLY, O_WRONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", flags[fd]); /* gets the lowest free number, which is fd */
}

int main(int argc, char **argv)
{
    keep_standard_files();
    return commands_run(argc, argv);
}
