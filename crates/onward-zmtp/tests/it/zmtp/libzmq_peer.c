// A libzmq peer for the interoperation tests.
//
//   libzmq_peer bind|connect KIND null|plain|curve ENDPOINT HEARTBEAT_MS
//
// Prints the endpoint that it is bound or connected to, then works until its standard input ends.
// The kinds:
//   dealer  sends every message back unchanged
//   xpub    replies to each subscription with a message: the topic, then "!"
//   sub     subscribes to "a" and prints each message on one line, with spaces between the frames
//   pull, router
//           print messages in the same way
//   echo-dealer, echo-router, echo-rep, echo-pair
//           send every message back unchanged
//   ask-req, ask-dealer, ask-pair, ask-router
//           send a message of each shape, expect it back, and print "done"; the ROUTER, whose
//           identity is "theirs", first receives a message from a ROUTER named "ours"
//   enquire-dealer
//           does the same behind an envelope with one address
//   send-push
//           sends a message of each shape
//   count-push, count-dealer, count-pair, count-pub, count-xpub
//           send the numbers from 0 on, in decimal, each below the number in the last line of
//           standard input
//   number-sub, number-xsub, number-pair
//           print messages in the same way as pull; subscribed to everything
//   number-req
//           sends each line of standard input as a request, and prints the reply
//   ignore-pull
//           receives nothing
//   digest-pull, digest-sub, digest-xsub
//           print each message on one line: length and Adler-32 of each frame; subscribed to
//           "shape"
//   publish-pub, publish-xpub
//           publish for each line of standard input: "ping" after the topic "shape", or, if the
//           line is "go", a message of each shape after it
//   table   binds a socket of each type, and prints the endpoints, one a line;
//           or, if it connects, connects a socket of the type and to the endpoint that each line of
//           standard input gives;
//           prints "accepted" when it has a connection, and "ended" when the connection is over
// A PLAIN server accepts "ali" with "open sesame". A CURVE server accepts every key. The keys are
// those of libzmq's manual.

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
// The number of octets that can be added up before the sums exceed 32 bits.
#define ADLER_BLOCK 5552

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
    // Receives the whole message first, because a REP may not reply to half a request.
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
        if (length > FRAME_BYTES) length = FRAME_BYTES;
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
        printf("%.*s%s", length, frame, more ? " " : "\n");
    }
    fflush(stdout);
}


// The shapes of messages: the lengths of their frames, the same as in the tests. A frame's octets
// count up to 250 and begin again.
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

static void expect_frame(void *socket, const void *octets, int length, int is_last) {
    zmq_msg_t found;
    zmq_msg_init(&found);
    check(zmq_msg_recv(&found, socket, 0), "receive a frame");
    int is_same = (int)zmq_msg_size(&found) == length && !memcmp(zmq_msg_data(&found), octets, length);
    if (!is_same || zmq_msg_more(&found) == is_last) {
        printf("a frame of %d came as something else\n", length);
        fflush(stdout);
    }
    zmq_msg_close(&found);
}

static void expect_shape(void *socket, int shape) {
    for (int frame = 1; frame <= shapes[shape][0]; frame++) {
        expect_frame(socket, octets, shapes[shape][frame], frame == shapes[shape][0]);
    }
}

// Returns the frames before each request and reply.
static const char *const *envelope_of(const char *kind) {
    static const char *const none[] = {NULL}, *const identity[] = {"ours", NULL}, *const delimited[] = {"address", "", NULL};
    if (!strcmp(kind, "ask-router")) return identity;
    return strncmp(kind, "enquire", 7) ? none : delimited;
}

static void ask(void *socket, const char *kind) {
    const char *const *envelope = envelope_of(kind);
    if (envelope[0] && !envelope[1]) {
        // A message to a peer that is not connected yet would be lost.
        expect_frame(socket, envelope[0], strlen(envelope[0]), 0);
        expect_frame(socket, "hello", 5, 1);
    }
    for (int shape = 0; shape < SHAPES; shape++) {
        for (int frame = 0; envelope[frame]; frame++) {
            check(zmq_send(socket, envelope[frame], strlen(envelope[frame]), ZMQ_SNDMORE), "send an envelope");
        }
        send_shape(socket, shape);
        for (int frame = 0; envelope[frame]; frame++) expect_frame(socket, envelope[frame], strlen(envelope[frame]), 0);
        expect_shape(socket, shape);
    }
    printf("done\n");
    fflush(stdout);
}

static void count_up(void *socket) {
    char line[32], text[32];
    long number = 0, end;
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%ld", &end) == 1) {
        for (; number < end; number++) {
            check(zmq_send(socket, text, sprintf(text, "%ld", number), 0), "send a number");
        }
    }
    _exit(0);
}

static void ask_lines(void *socket) {
    char line[32];
    int events;
    size_t size = sizeof events;
    while (scanf("%31s", line) == 1) {
        // When libzmq sends, it checks for disconnected peers at most once in a millisecond. When it
        // returns its events, it checks at once.
        check(zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size), "events");
        check(zmq_send(socket, line, strlen(line), 0), "ask");
        print_message(socket);
    }
    _exit(0);
}

static uint32_t adler_32(const unsigned char *data, size_t size) {
    uint32_t low = 1, high = 0;
    for (size_t start = 0; start < size; start += ADLER_BLOCK) {
        size_t end = start + ADLER_BLOCK < size ? start + ADLER_BLOCK : size;
        for (size_t index = start; index < end; index++) {
            low += data[index];
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return high << 16 | low;
}

static void digest(void *socket) {
    int more = 1;
    while (more) {
        zmq_msg_t frame;
        zmq_msg_init(&frame);
        check(zmq_msg_recv(&frame, socket, 0), "receive");
        more = zmq_msg_more(&frame);
        uint32_t sum = adler_32(zmq_msg_data(&frame), zmq_msg_size(&frame));
        printf("%zu:%08x%s", zmq_msg_size(&frame), sum, more ? " " : "\n");
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

// Returns a socket with events of the peers that the socket accepts. libzmq reports only the
// disconnection of a peer whose type is incompatible.
static void *monitor(void *context, void *socket) {
    static int next = 0;
    char endpoint[32];
    sprintf(endpoint, "inproc://monitor-%d", next++);
    check(zmq_socket_monitor(socket, endpoint, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED), "monitor");
    void *events = zmq_socket(context, ZMQ_PAIR);
    check(zmq_connect(events, endpoint), endpoint);
    return events;
}

// Returns whether the connection is over.
static int print_event(void *events) {
    unsigned char event[6];
    char endpoint[FRAME_BYTES];
    uint16_t kind;
    check(zmq_recv(events, event, sizeof event, 0), "event");
    check(zmq_recv(events, endpoint, sizeof endpoint, 0), "event");
    memcpy(&kind, event, sizeof kind);
    printf("%s\n", kind == ZMQ_EVENT_DISCONNECTED ? "ended" : "accepted");
    fflush(stdout);
    return kind == ZMQ_EVENT_DISCONNECTED;
}

static void visit(void *context) {
    char name[16], endpoint[FRAME_BYTES];
    printf("ready\n");
    fflush(stdout);
    while (scanf("%15s %255s", name, endpoint) == 2) {
        int never = -1, at_once = 0;
        void *socket = zmq_socket(context, type_of(name)), *events = monitor(context, socket);
        check(zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &never, sizeof never), "reconnect");
        check(zmq_setsockopt(socket, ZMQ_LINGER, &at_once, sizeof at_once), "linger");
        check(zmq_connect(socket, endpoint), endpoint);
        while (!print_event(events)) {}
        zmq_socket_monitor(socket, NULL, 0);
        zmq_close(events);
        zmq_close(socket);
    }
    _exit(0);
}

static void serve_table(void *context) {
    zmq_pollitem_t items[TYPES];
    for (int index = 0; index < TYPES; index++) {
        void *socket = zmq_socket(context, types[index].type);
        items[index] = (zmq_pollitem_t){monitor(context, socket), 0, ZMQ_POLLIN, 0};
        check(zmq_bind(socket, "tcp://127.0.0.1:*"), "bind");
        print_endpoint(socket);
    }
    watch_stdin();
    for (;;) {
        check(zmq_poll(items, TYPES, -1), "poll");
        for (int index = 0; index < TYPES; index++) if (items[index].revents) print_event(items[index].socket);
    }
}

// Does the work of a kind whose name has a dash. Does not return.
static void work(void *socket, const char *kind) {
    if (!strncmp(kind, "publish", 7)) publish(socket);
    if (!strncmp(kind, "count", 5)) count_up(socket);
    if (!strcmp(kind, "number-req")) ask_lines(socket);
    watch_stdin();
    if (!strncmp(kind, "ask", 3) || !strncmp(kind, "enquire", 7)) ask(socket, kind);
    else if (!strncmp(kind, "send", 4)) for (int shape = 0; shape < SHAPES; shape++) send_shape(socket, shape);
    else if (!strncmp(kind, "digest", 6)) for (;;) digest(socket);
    else if (!strncmp(kind, "number", 6)) for (;;) print_message(socket);
    else if (!strncmp(kind, "echo", 4)) for (;;) echo_message(socket);
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
    if (!strcmp(kind, "table")) {
        if (binds) serve_table(context);
        visit(context);
    }
    start_authentication(context);
    int type = type_of(kind), has_role = strchr(kind, '-') != NULL;
    void *socket = zmq_socket(context, type);
    secure(socket, arguments[3], binds);
    if (!strncmp(kind, "ignore", 6)) {
        int one = 1;
        check(zmq_setsockopt(socket, ZMQ_RCVHWM, &one, sizeof one), "mark");
    }
    if (type == ZMQ_PUB || type == ZMQ_XPUB) {
        // libzmq notices late that messages have left its queue, and would drop messages for which
        // there is room.
        int unlimited = 0;
        check(zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited), "mark");
    }
    if (type == ZMQ_ROUTER) set(socket, ZMQ_ROUTING_ID, "theirs");
    if (heartbeat) {
        int timeout = heartbeat * HEARTBEATS_UNTIL_TIMEOUT;
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &heartbeat, sizeof heartbeat), "heartbeat");
        check(zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &timeout, sizeof timeout), "heartbeat");
    }
    subscribe(socket, type, !has_role ? "a" : strncmp(kind, "number", 6) ? "shape" : "");
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
