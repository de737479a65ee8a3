#include <signal.h>

#include "extender/commands.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* a peer that hangs up is an error of one write */
    return commands_run(argc, argv);
}
