/* app that sends trickle messages without the BOINC library: trickle COUNT SECONDS.
   The client reads 8 channels of 1024 bytes; the app tells of a message in trickle_up.xml on channel 6, and sends the
   next one when the client has moved that file away. Then it runs for SECONDS. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1, seconds = argc > 2 ? atoi(argv[2]) : 1;
    int fd = open("boinc_mmap_file", O_RDWR);
    if (fd < 0) return 1;
    char *channel = (char *)mmap(0, 8 * 1024, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) + 6 * 1024;
    for (int number = 1; number <= count; number++) {
        FILE *file = fopen("trickle_up.xml.new", "w");
        fprintf(file, "<variety>progress</variety>\n<step>%d</step> a < b & c\n</result>\n<result>\n", number);
        fclose(file);
        rename("trickle_up.xml.new", "trickle_up.xml");
        while (channel[0]) usleep(20000);
        strcpy(channel + 1, "<have_new_trickle_up/>\n");
        channel[0] = 1;
        while (access("trickle_up.xml", F_OK) == 0) usleep(50000);
        sleep(1); /* the client names its copy by the second */
    }
    sleep(seconds);
    FILE *out = fopen("out", "w");
    fprintf(out, "done\n");
    fclose(out);
    FILE *finished = fopen("boinc_finish_called", "w");
    fprintf(finished, "0\n");
    fclose(finished);
    return 0;
}
