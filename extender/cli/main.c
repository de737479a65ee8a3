#include <fcntl.h>
#include <unistd.h>

#include "extender/cli/commands.h"

/* One that is closed would become the next file or socket, and get what is printed. What is written
 * to standard output fails then, as it should. */
static void keep_standard_files(void)
{
    static const int flags[] = {O_RDONLY, O_RDONLY, O_WRONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", flags[fd]); /* the lowest that is free: this one */
}

int main(int argc, char **argv)
{
    keep_standard_files();
    return commands_run(argc, argv);
}
