// A peer that is libzmq, for the tests of interoperation.
//
//   libzmq_peer bind|connect KIND null|plain|curve ENDPOINT HEARTBEAT_MS
//
// Prints the endpoint it is bound to, then works until its standard input ends, as one of these kinds:
//   dealer  sends every message back as it came
//   xpub    answers each subscription with a message: the topic, then "!"
//   sub     subscribes to "a" and prints each message that comes, one line, frames with spaces between
//   echo-dealer, echo-router, echo-rep, echo-pair
//           send every message back as it came
//   ask-req, ask-dealer
//           send a message of each shape, expect it back, and print "done"
//   send-push
//           sends a message of each shape
//   count-push
//           sends the numbers from 0 on, in decimal, for ever
//   digest-pull, digest-sub, digest-xsub
//           print each message that comes, one line: length and FNV-1a of each frame; subscribed to "shape"
//   publish-pub, publish-xpub
//           for each line of standard input: "ping" after the topic "shape", or, if the line is "go", a message of each shape after it
//   table   binds a socket of each type, and prints the endpoints, one line each
// As a server of PLAIN it accepts "ali" with "open sesame"; as one of CURVE every key. The keys are those of libzmq's manual.

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define SERVER_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define SERVER_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
#define CLIENT_PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define CLIENT_SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
#define ZAP_FRAMES 16
#define FRAME_BYTES 256
#define MOST_FRAMES 16
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
    zmq_msg_t frames[MOST_FRAMES];
    int count = 0, more = 1;
    // All of it first, for a REP may not answer half a question.
    while (more) {
        assert(count < MOST_FRAMES);
        zmq_msg_init(&frames[count]);
        check(zmq_msg_recv(&frames[count], socket, 0), "receive");
        more = zmq_msg_more(&frames[count++]);
    }
    for (int index = 0; index < count; index++) {
        check(zmq_msg_send(&frames[index], socket, index + 1 < count ? ZMQ_SNDMORE : 0), "send");
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


// The shapes of messages: the lengths of their frames, as the tests know them. A frame's octets count up to 250 and begin again.
#define SHAPES 7
#define LARGEST (8 * 1024 * 1024)
static const int shapes[SHAPES][5] = {
    {1, 0}, {1, 1}, {1, 255}, {1, 256}, {1, 65536}, {4, 0, 3, 65536, 0}, {1, LARGEST},
};
static unsigned char *octets;

static void fill_octets(void) {
    octets = malloc(LARGEST);
    for (int index = 0; index < LARGEST; index++) octets[index] = index % 251;
}

static void send_shape(void *socket, int shape) {
    for (int frame = 1; frame <= shapes[shape][0]; frame++) {
        int more = frame < shapes[shape][0] ? ZMQ_SNDMORE : 0;
        check(zmq_send(socket, octets, shapes[shape][frame], more), "send a shape");
    }
}

static void expect_shape(void *socket, int shape) {
    for (int frame = 1; frame <= shapes[shape][0]; frame++) {
        zmq_msg_t found;
        zmq_msg_init(&found);
        check(zmq_msg_recv(&found, socket, 0), "receive a shape");
        int length = shapes[shape][frame], is_last = frame == shapes[shape][0];
        int is_same = (int)zmq_msg_size(&found) == length && !memcmp(zmq_msg_data(&found), octets, length);
        if (!is_same || zmq_msg_more(&found) == is_last) {
            printf("shape %d came back as something else\n", shape);
            fflush(stdout);
        }
        zmq_msg_close(&found);
    }
}

static void ask(void *socket) {
    for (int shape = 0; shape < SHAPES; shape++) {
        send_shape(socket, shape);
        expect_shape(socket, shape);
    }
    printf("done\n");
    fflush(stdout);
}

static void count_up(void *socket) {
    char text[32];
    for (long number = 0;; number++) {
        check(zmq_send(socket, text, sprintf(text, "%ld", number), 0), "send a number");
    }
}

static void digest(void *socket) {
    int more = 1;
    while (more) {
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        check(zmq_msg_recv(&frame, socket, 0), "receive");
        uint64_t hash = 0xcbf29ce484222325u;
        unsigned char *data = zmq_msg_data(&frame);
        for (size_t index = 0; index < zmq_msg_size(&frame); index++) hash = (hash ^ data[index]) * 0x100000001b3u;
        more = zmq_msg_more(&frame);
        printf("%zu:%016llx%s", zmq_msg_size(&frame), (unsigned long long)hash, more ? " " : "\n");
        zmq_msg_close(&frame);
    }
    fflush(stdout);
}

static void publish(void *socket) {
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "go\n")) {
            check(zmq_send(socket, "shape", 5, ZMQ_SNDMORE), "publish");
            check(zmq_send(socket, "ping", 4, 0), "publish");
            continue;
        }
        for (int shape = 0; shape < SHAPES; shape++) {
            check(zmq_send(socket, "shape", 5, ZMQ_SNDMORE), "publish");
            send_shape(socket, shape);
        }
    }
    _exit(0);
}

static void *wait_for_end(void *unused) {
    (void)unused;
    char line[16];
    while (read(STDIN_FILENO, line, sizeof line) > 0) {}
    _exit(0);
}

static void watch_stdin(void) {
    pthread_t thread;
    assert(pthread_create(&thread, NULL, wait_for_end, NULL) == 0);
}

static const struct { const char *name; int type; } types[] = {
    {"req", ZMQ_REQ}, {"rep", ZMQ_REP}, {"dealer", ZMQ_DEALER}, {"router", ZMQ_ROUTER}, {"pub", ZMQ_PUB}, {"xpub", ZMQ_XPUB},
    {"sub", ZMQ_SUB}, {"xsub", ZMQ_XSUB}, {"push", ZMQ_PUSH}, {"pull", ZMQ_PULL}, {"pair", ZMQ_PAIR},
};
#define TYPES (int)(sizeof types / sizeof types[0])

static int type_of(const char *kind) {
    const char *dash = strchr(kind, '-'), *name = dash ? dash + 1 : kind;
    for (int index = 0; index < TYPES; index++) {
        if (!strcmp(types[index].name, name)) return types[index].type;
    }
    fprintf(stderr, "no such kind: %s\n", kind);
    _exit(1);
}

static void print_endpoint(void *socket) {
    char bound[FRAME_BYTES];
    size_t size = sizeof bound;
    check(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size), "endpoint");
    printf("%s\n", bound);
    fflush(stdout);
}

static void serve_table(void *context) {
    for (int index = 0; index < TYPES; index++) {
        void *socket = zmq_socket(context, types[index].type);
        check(zmq_bind(socket, "tcp://127.0.0.1:*"), "bind");
        print_endpoint(socket);
    }
    wait_for_end(NULL);
}

// What the kinds do that say it before a dash. Does not return.
static void work(void *socket, const char *kind) {
    if (!strncmp(kind, "publish", 7)) publish(socket);
    watch_stdin();
    if (!strncmp(kind, "ask", 3)) ask(socket);
    else if (!strncmp(kind, "count", 5)) count_up(socket);
    else if (!strncmp(kind, "send", 4)) for (int shape = 0; shape < SHAPES; shape++) send_shape(socket, shape);
    else if (!strncmp(kind, "digest", 6)) for (;;) digest(socket);
    else for (;;) echo_message(socket);
    for (;;) pause();
}

static void subscribe(void *socket, int type, const char *topic) {
    char subscription[16] = {1};
    strcpy(subscription + 1, topic);
    if (type == ZMQ_SUB) set(socket, ZMQ_SUBSCRIBE, topic);
    if (type == ZMQ_XSUB) check(zmq_send(socket, subscription, 1 + strlen(topic), 0), "subscribe");
}

int main(int count, char **arguments) {
    assert(count == 6);
    int binds = !strcmp(arguments[1], "bind"), heartbeat = 0;
    const char *kind = arguments[2];
    sscanf(arguments[5], "%d", &heartbeat);
    fill_octets();
    void *context = zmq_ctx_new();
    if (!strcmp(kind, "table")) serve_table(context);
    start_authentication(context);
    int type = type_of(kind), has_role = strchr(kind, '-') != NULL;
    void *socket = zmq_socket(context, type);
    secure(socket, arguments[3], binds);
    if (heartbeat) {
        int timeout = heartbeat * HEARTBEATS_UNTIL_TIMEOUT;
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &heartbeat, sizeof heartbeat), "heartbeat");
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &timeout, sizeof timeout), "heartbeat");
    }
    subscribe(socket, type, has_role ? "shape" : "a");
    check(binds ? zmq_bind(socket, arguments[4]) : zmq_connect(socket, arguments[4]), arguments[4]);
    print_endpoint(socket);
    if (has_role) work(socket, kind);
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
