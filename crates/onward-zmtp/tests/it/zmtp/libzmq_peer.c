// A peer that is libzmq, for the tests of interoperation.
//
//   libzmq_peer bind|connect dealer|xpub|sub null|plain|curve ENDPOINT HEARTBEAT_MS
//
// Prints the endpoint it is bound to, then works until its standard input ends:
//   dealer  sends every message back as it came
//   xpub    answers each subscription with a message: the topic, then "!"
//   sub     subscribes to "a" and prints each message that comes, one line, frames with spaces between
// As a server of PLAIN it accepts "ali" with "open sesame"; as one of CURVE every key. The keys are those of libzmq's manual.

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define SERVER_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define SERVER_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
#define CLIENT_PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define CLIENT_SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
#define ZAP_FRAMES 16
#define FRAME_BYTES 256
#define HEARTBEATS_UNTIL_TIMEOUT 15

static void check(int result, const char *what) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        _exit(1);
    }
}

static void *authenticate(void *handler) {
    for (;;) {
        char frames[ZAP_FRAMES][FRAME_BYTES] = {{0}};
        int count = 0, more = 1;
        size_t size = sizeof more;
        while (more) {
            if (zmq_recv(handler, frames[count], FRAME_BYTES - 1, 0) < 0) return NULL;
            zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size);
            if (count < ZAP_FRAMES - 1) count++;
        }
        int is_plain = strcmp(frames[5], "PLAIN") == 0;
        int is_known = !strcmp(frames[6], "ali") && !strcmp(frames[7], "open sesame");
        const char *status = !is_plain || is_known ? "200" : "400";
        zmq_send(handler, "1.0", 3, ZMQ_SNDMORE);
        zmq_send(handler, frames[1], strlen(frames[1]), ZMQ_SNDMORE);
        zmq_send(handler, status, 3, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, ZMQ_SNDMORE);
        zmq_send(handler, "", 0, 0);
    }
}

static void start_authentication(void *context) {
    void *handler = zmq_socket(context, ZMQ_REP);
    check(zmq_bind(handler, "inproc://zeromq.zap.01"), "bind ZAP");
    pthread_t thread;
    assert(pthread_create(&thread, NULL, authenticate, handler) == 0);
}

static void set(void *socket, int option, const char *value) {
    check(zmq_setsockopt(socket, option, value, strlen(value)), "option");
}

static void secure(void *socket, const char *mechanism, int is_server) {
    int on = 1;
    if (!strcmp(mechanism, "plain")) {
        if (is_server) {
            check(zmq_setsockopt(socket, ZMQ_PLAIN_SERVER, &on, sizeof on), "PLAIN");
        } else {
            set(socket, ZMQ_PLAIN_USERNAME, "ali");
            set(socket, ZMQ_PLAIN_PASSWORD, "open sesame");
        }
    } else if (!strcmp(mechanism, "curve")) {
        if (is_server) {
            check(zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &on, sizeof on), "CURVE");
            set(socket, ZMQ_CURVE_SECRETKEY, SERVER_SECRET);
        } else {
            set(socket, ZMQ_CURVE_SERVERKEY, SERVER_PUBLIC);
            set(socket, ZMQ_CURVE_PUBLICKEY, CLIENT_PUBLIC);
            set(socket, ZMQ_CURVE_SECRETKEY, CLIENT_SECRET);
        }
    }
}

static void echo_message(void *socket) {
    int more = 1;
    while (more) {
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        check(zmq_msg_recv(&frame, socket, 0), "receive");
        more = zmq_msg_more(&frame);
        check(zmq_msg_send(&frame, socket, more ? ZMQ_SNDMORE : 0), "send");
    }
}

static void answer_subscription(void *socket) {
    char subscription[FRAME_BYTES];
    int size = zmq_recv(socket, subscription, sizeof subscription - 1, 0);
    check(size, "receive");
    if (size > 0 && subscription[0] == 1) {
        subscription[size] = '!';
        check(zmq_send(socket, subscription + 1, size, 0), "send");
    }
}

static void print_message(void *socket) {
    int more = 1;
    size_t size = sizeof more;
    while (more) {
        char frame[FRAME_BYTES];
        int length = zmq_recv(socket, frame, sizeof frame, 0);
        check(length, "receive");
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
        printf("%.*s%s", length, frame, more ? " " : "\n");
    }
    fflush(stdout);
}

int main(int count, char **arguments) {
    assert(count == 6);
    int binds = !strcmp(arguments[1], "bind"), heartbeat = 0;
    const char *kind = arguments[2];
    sscanf(arguments[5], "%d", &heartbeat);
    void *context = zmq_ctx_new();
    start_authentication(context);
    int type = !strcmp(kind, "dealer") ? ZMQ_DEALER : !strcmp(kind, "xpub") ? ZMQ_XPUB : ZMQ_SUB;
    void *socket = zmq_socket(context, type);
    secure(socket, arguments[3], binds);
    if (heartbeat > 0) {
        int timeout = HEARTBEATS_UNTIL_TIMEOUT * heartbeat;
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &heartbeat, sizeof heartbeat), "heartbeat");
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &timeout, sizeof timeout), "heartbeat");
    }
    if (type == ZMQ_SUB) set(socket, ZMQ_SUBSCRIBE, "a");
    check(binds ? zmq_bind(socket, arguments[4]) : zmq_connect(socket, arguments[4]), arguments[4]);
    char endpoint[FRAME_BYTES] = "";
    size_t size = sizeof endpoint;
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
    printf("%s\n", endpoint);
    fflush(stdout);
    for (;;) {
        zmq_pollitem_t items[] = {{socket, 0, ZMQ_POLLIN, 0}, {NULL, STDIN_FILENO, ZMQ_POLLIN, 0}};
        check(zmq_poll(items, 2, -1), "poll");
        if (items[1].revents) _exit(0);
        if (!items[0].revents) continue;
        if (type == ZMQ_DEALER) echo_message(socket);
        else if (type == ZMQ_XPUB) answer_subscription(socket);
        else print_message(socket);
    }
}
