/* main.c - the program: find the subcommand, run it, print its error */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "version")) {
        printf("shardlaunch %s\n", SL_VERSION);
        return 0;
    }
    fprintf(stderr, "usage: shardlaunch SUBCOMMAND\n");
    return 2;
}
