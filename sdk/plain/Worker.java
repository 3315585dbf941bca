// A worker without a library, for `onward work --listen ipc://PATH`. Start it by
// `ONWARD_GATEWAY=ipc://PATH java Worker.java`. It needs Java 17 and nothing else.
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

public class Worker {
    static final Map<String, UnaryOperator<String>> HANDLERS = Map.of("upper", String::toUpperCase);
    static SocketChannel link;
    static DataInputStream in;

    static synchronized void write(byte[]... parts) throws IOException {
        var out = new ByteArrayOutputStream();
        for (byte[] part : parts) out.write(part);
        for (var left = ByteBuffer.wrap(out.toByteArray()); left.hasRemaining(); ) link.write(left);
    }

    /** Returns a frame whose length has 8 bytes. The flags are 1 if another one follows, 4 for a command. */
    static byte[] frame(int flags, byte[] body) {
        return ByteBuffer.allocate(9 + body.length).put((byte) (2 | flags)).putLong(body.length).put(body).array();
    }

    static void send(String header) throws IOException {
        write(frame(0, header.getBytes(StandardCharsets.UTF_8)));
    }

    /** Returns the frames of the next message, and answers pings before it. */
    static List<byte[]> receive() throws IOException {
        var frames = new ArrayList<byte[]>();
        for (int flags = 1; (flags & 1) != 0; ) {
            flags = in.readUnsignedByte();
            byte[] body = new byte[(flags & 2) != 0 ? (int) in.readLong() : in.readUnsignedByte()];
            in.readFully(body);
            if ((flags & 4) == 0) {
                frames.add(body);
                continue;
            }
            flags = 1;
            if (new String(body, 1, 4, StandardCharsets.US_ASCII).equals("PING")) {
                var pong = ByteBuffer.allocate(body.length - 2).put("\4PONG".getBytes());
                write(frame(4, pong.put(body, 7, body.length - 7).array()));
            }
        }
        return frames;
    }

    /** A reader of JSON: maps, lists, and texts for all else. */
    record Json(String text, int[] at) {
        static Map<?, ?> of(byte[] header) {
            return (Map<?, ?>) new Json(new String(header, StandardCharsets.UTF_8), new int[1]).value();
        }

        char next() {
            while (" \n\r\t,:".indexOf(text.charAt(at[0])) >= 0) at[0]++;
            return text.charAt(at[0]);
        }

        Object value() {
            char first = next();
            int from = at[0]++;
            if (first == '{') {
                var map = new HashMap<Object, Object>();
                while (next() != '}') map.put(value(), value());
                at[0]++;
                return map;
            }
            if (first == '[') {
                var list = new ArrayList<Object>();
                while (next() != ']') list.add(value());
                at[0]++;
                return list;
            }
            if (first != '"') {
                while (",}] ".indexOf(text.charAt(at[0])) < 0) at[0]++;
                return text.substring(from, at[0]);
            }
            while (text.charAt(at[0]) != '"') at[0] += text.charAt(at[0]) == '\\' ? 2 : 1;
            return text.substring(from + 1, at[0]++); // names and numbers have no escapes
        }
    }

    static void run(Map<?, ?> task, List<byte[]> frames) throws IOException {
        Object at = task.get("payload");
        byte[] payload = at == null ? new byte[0] : frames.get(1 + Integer.parseInt(at.toString()));
        String result = HANDLERS.get(task.get("kind")).apply(new String(payload, StandardCharsets.UTF_8));
        String end = "{\"t\":\"end\",\"payloads\":1,\"ends\":[{\"task\":\"%s\",\"fence\":\"%s\",\"outcome\":\"ok\",\"payload\":0}]}";
        byte[] header = end.formatted(task.get("task"), task.get("fence")).getBytes(StandardCharsets.UTF_8);
        write(frame(1, header), frame(0, result.getBytes(StandardCharsets.UTF_8)));
    }

    /** Sends the greeting and `READY`, and reads those of the gateway. */
    static void greet() throws IOException {
        var greeting = ByteBuffer.allocate(64).put(0, (byte) 0xff).put(9, new byte[] {0x7f, 3, 1, 'N', 'U', 'L', 'L'});
        var ready = "\5READY\13Socket-Type\0\0\0\6DEALER".getBytes(StandardCharsets.US_ASCII);
        write(greeting.array(), frame(4, ready));
        in.readFully(new byte[64]);
    }

    public static void main(String[] arguments) throws IOException {
        link = SocketChannel.open(UnixDomainSocketAddress.of(System.getenv("ONWARD_GATEWAY").substring("ipc://".length())));
        in = new DataInputStream(Channels.newInputStream(link));
        greet();
        send("{\"t\":\"hello\",\"protocol\":[1],\"kinds\":{\"upper\":{}}}");
        long pause = Long.parseLong(Json.of(receive().get(0)).get("heartbeat_ms").toString()) / 2;
        var beats = new Thread(() -> { // a busy handler must not cost the lease
            try {
                for (long n = 0; ; n++) {
                    Thread.sleep(pause);
                    send("{\"t\":\"beat\",\"n\":%d}".formatted(n));
                }
            } catch (IOException | InterruptedException end) {
                System.err.println("no beats any more: " + end); // the reader sees the end too
            }
        });
        beats.setDaemon(true);
        beats.start();
        try {
            serve();
        } catch (EOFException gone) {
            System.err.println("the gateway is gone; a task that runs starts again elsewhere");
        }
    }

    static void serve() throws IOException {
        send("{\"t\":\"grant\",\"credit\":1}");
        for (long credit = 2; ; ) {
            var frames = receive();
            var header = Json.of(frames.get(0));
            if (header.get("t").equals("drain")) send("{\"t\":\"bye\"}");
            if (!(header.get("tasks") instanceof List<?> tasks)) continue;
            for (Object task : tasks) {
                run((Map<?, ?>) task, frames);
                send("{\"t\":\"grant\",\"credit\":%d}".formatted(credit++));
            }
        }
    }
}
