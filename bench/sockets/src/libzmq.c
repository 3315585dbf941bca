// libzmq under one workload: push_pull|dealer_router stream|batch|round_trip BYTES SECONDS. Prints one number.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define STEP 1024
#define MARK 4096
#define ENDPOINT "ipc://@bench-libzmq"

static void *context, *sender, *receiver;
static int is_router;
static size_t bytes;
static char *payload;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void send_one(void *socket) { zmq_send(socket, payload, bytes, 0); }

static void receive_one(void *socket, int has_identity) {
    zmq_msg_t frame;
    for (int index = 0; index <= has_identity; index++) {
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket, 0) < 0) exit(1);
        zmq_msg_close(&frame);
    }
}

static void *send_for_ever(void *unused) {
    for (;;) send_one(sender);
    return unused;
}

static void *echo_for_ever(void *unused) {
    zmq_msg_t identity, body;
    for (;;) {
        zmq_msg_init(&identity);
        zmq_msg_init(&body);
        zmq_msg_recv(&identity, receiver, 0);
        zmq_msg_recv(&body, receiver, 0);
        zmq_msg_send(&identity, receiver, ZMQ_SNDMORE);
        zmq_msg_send(&body, receiver, 0);
    }
    return unused;
}

static int by_size(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return difference < 0 ? -1 : difference > 0;
}

static double round_trip(double seconds) {
    size_t count = 0, most = 1 << 22;
    double *trips = malloc(most * sizeof *trips), start = now();
    while (now() - start < seconds && count < most) {
        double sent = now();
        send_one(sender);
        receive_one(sender, 0);
        trips[count++] = now() - sent;
    }
    qsort(trips, count, sizeof *trips, by_size);
    return trips[count / 2] * 1e6;
}

static double throughput(int is_batch, double seconds) {
    long received = 0;
    double start = now();
    while (now() - start < seconds) {
        for (int index = 0; is_batch && index < STEP; index++) send_one(sender);
        for (int index = 0; index < STEP; index++) receive_one(receiver, is_router);
        received += STEP;
    }
    return received / (now() - start);
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    int mark = MARK;
    pthread_t thread;
    is_router = !strcmp(arguments[1], "dealer_router");
    bytes = atol(arguments[3]);
    payload = malloc(bytes);
    memset(payload, 0xCD, bytes);
    context = zmq_ctx_new();
    sender = zmq_socket(context, is_router ? ZMQ_DEALER : ZMQ_PUSH);
    receiver = zmq_socket(context, is_router ? ZMQ_ROUTER : ZMQ_PULL);
    zmq_setsockopt(sender, ZMQ_SNDHWM, &mark, sizeof mark);
    zmq_setsockopt(receiver, ZMQ_RCVHWM, &mark, sizeof mark);
    if (zmq_bind(receiver, ENDPOINT) || zmq_connect(sender, ENDPOINT)) return 1;
    send_one(sender);
    receive_one(receiver, is_router);
    double seconds = atof(arguments[4]), value;
    if (!strcmp(arguments[2], "round_trip")) {
        pthread_create(&thread, NULL, echo_for_ever, NULL);
        value = round_trip(seconds);
    } else {
        int is_batch = !strcmp(arguments[2], "batch");
        if (!is_batch) pthread_create(&thread, NULL, send_for_ever, NULL);
        value = throughput(is_batch, seconds);
    }
    printf("%f\n", value);
    fflush(stdout);
    _Exit(0);
}
