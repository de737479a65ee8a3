/* replay FILE...: runs a fuzz target over files without libFuzzer, so that every build checks them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { FILE_BYTES_MAX = 1 << 20 };

int main(int argc, char **argv)
{
    uint8_t *data = malloc(FILE_BYTES_MAX);

    if (argc < 2 || data == NULL) {
        (void)fprintf(stderr, "replay: no files\n");
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "re");
        if (file == NULL) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, FILE_BYTES_MAX, file);
        (void)fclose(file);
        uint8_t *exact = malloc(size == 0 ? 1 : size); /* so ASan sees a read behind the end */
        if (exact == NULL)
            return 1;
        for (size_t b = 0; b < size; b++)
            exact[b] = data[b];
        (void)LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    (void)printf("%d inputs\n", argc - 1);
    free(data);
    return 0;
}
