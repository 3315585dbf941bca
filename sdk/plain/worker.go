// A worker without a library, a child of `onward work --app ./worker`: the protocol is on descriptor 3.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"syscall"
	"time"
)

type fields = map[string]any

var link = os.NewFile(3, "gateway") // a write is whole, also beside those of other goroutines
var handlers = map[string]func([]byte) []byte{"upper": bytes.ToUpper}

func frame(more byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{2 | more}, uint64(len(body))), body...)
}

func send(header fields, payload ...[]byte) { // at most one
	header["payloads"] = len(payload)
	first, _ := json.Marshal(header)
	link.Write(append(frame(byte(len(payload)), first), bytes.Join(payload, nil)...)) // a loss shows in the next read
}

func receive() (header fields, frames [][]byte) {
	for flags := []byte{1}; flags[0]&1 != 0; {
		if _, err := io.ReadFull(link, flags); err != nil {
			os.Exit(0) // the gateway is gone; a task that runs starts again elsewhere
		}
		size := make([]byte, 8)
		io.ReadFull(link, size[7-7*(flags[0]>>1&1):])
		frames = append(frames, make([]byte, binary.BigEndian.Uint64(size)))
		io.ReadFull(link, frames[len(frames)-1])
	}
	json.Unmarshal(frames[0], &header)
	return header, frames[1:]
}

func main() {
	syscall.CloseOnExec(3)
	send(fields{"t": "hello", "protocol": []int{1}, "kinds": fields{"upper": fields{}}})
	welcome, _ := receive()
	go func() { // a busy handler must not cost the lease
		for n := 0; ; n++ {
			time.Sleep(time.Duration(welcome["heartbeat_ms"].(float64)/2) * time.Millisecond)
			send(fields{"t": "beat", "n": n})
		}
	}()
	for credit, next := 1, "grant"; ; credit++ { // one task at a time needs no `alive`, `ack` and `stop`
		send(fields{"t": next, "credit": credit})
		header, payloads := receive()
		for header["t"] != "tasks" && header["t"] != "drain" {
			header, payloads = receive()
		}
		if header["t"] == "drain" {
			next = "bye"
			continue
		}
		task := header["tasks"].([]any)[0].(fields) // the credit is for one, so `payloads` has at most its own
		result := handlers[task["kind"].(string)](bytes.Join(payloads, nil))
		end := fields{"task": task["task"], "fence": task["fence"], "outcome": "ok", "payload": 0}
		send(fields{"t": "end", "ends": []fields{end}}, frame(0, result))
	}
}
