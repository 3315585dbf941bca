// A worker without a library, a child of `onward work --app ./worker`: the protocol is on descriptor 3.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

type task struct {
	Task, Fence, Kind string
	Payload           *int
}
type header struct {
	T     string
	Beat  time.Duration `json:"heartbeat_ms"`
	Tasks []task
}
type fields = map[string]any

var link, sending = os.NewFile(3, "gateway"), sync.Mutex{}
var handlers = map[string]func([]byte) []byte{"upper": bytes.ToUpper}

func send(head fields, payloads ...[]byte) {
	head["payloads"] = len(payloads)
	first, _ := json.Marshal(head)
	message := []byte{}
	for at, body := range append([][]byte{first}, payloads...) {
		flags := byte(2) // the length has 8 bytes
		if at < len(payloads) {
			flags |= 1 // another frame follows
		}
		message = append(binary.BigEndian.AppendUint64(append(message, flags), uint64(len(body))), body...)
	}
	sending.Lock()
	defer sending.Unlock()
	link.Write(message) // a lost connection shows in the next read
}

func read(from io.Reader, size uint64) []byte {
	data := make([]byte, size)
	if _, err := io.ReadFull(from, data); err != nil {
		os.Exit(0) // the gateway is gone; a task that runs starts again elsewhere
	}
	return data
}

func receive(from io.Reader) (head header, payloads [][]byte) {
	for flags := byte(1); flags&1 != 0; {
		flags = read(from, 1)[0]
		size := append(make([]byte, 7), read(from, uint64(1+7*(flags>>1&1)))...)
		payloads = append(payloads, read(from, binary.BigEndian.Uint64(size[len(size)-8:])))
	}
	json.Unmarshal(payloads[0], &head)
	return head, payloads[1:]
}

func run(one task, payloads [][]byte) {
	var payload []byte
	if one.Payload != nil {
		payload = payloads[*one.Payload]
	}
	end := fields{"task": one.Task, "fence": one.Fence, "outcome": "ok", "payload": 0}
	send(fields{"t": "end", "ends": []fields{end}}, handlers[one.Kind](payload))
}

func main() {
	syscall.CloseOnExec(3)
	from := bufio.NewReader(link)
	send(fields{"t": "hello", "protocol": []int{1}, "kinds": fields{"upper": fields{}}})
	welcome, _ := receive(from)
	go func() { // a busy handler must not cost the lease
		for n := 0; ; n++ {
			time.Sleep(welcome.Beat * time.Millisecond / 2)
			send(fields{"t": "beat", "n": n})
		}
	}()
	credit := 1
	send(fields{"t": "grant", "credit": credit})
	for {
		head, payloads := receive(from)
		for _, one := range head.Tasks {
			run(one, payloads)
			credit++
			send(fields{"t": "grant", "credit": credit})
		}
		if head.T == "drain" {
			send(fields{"t": "bye"})
		}
	}
}
