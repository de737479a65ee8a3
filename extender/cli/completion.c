#include <stdio.h>
#include <string.h>

#include "extender/cli/commands.h"

/* The scripts know no command and no option: they ask `claimguard __complete` (complete.h). */
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

int command_completion(const struct arguments *arguments)
{
    struct error err = {0};

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(arguments->operand, scripts[i].shell) == 0) {
            (void)fputs(scripts[i].text, stdout);
            return EXIT_DONE;
        }
    (void)error_set(&err, ERROR_INVALID, "completion: %s is not bash, zsh or fish",
                    arguments->operand);
    return command_fail(&err);
}
