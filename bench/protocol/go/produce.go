package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// producerVariable marks a program as a producer, and holds the location of the queues.
const producerVariable = "BENCH_PRODUCER"

// Submit submits a payload to a queue and returns when it is accepted.
type Submit func(queue string, payload []byte) error

// Produce submits all tasks of a row at the times of a schedule fixed beforehand, each from its own
// goroutine, so that late acknowledgements delay no arrival.
func Produce(row *Row, submit Submit) ([]Submitted, error) {
	failures := make(chan error, row.Count)
	submitted, err := arrivals(row, submit, func(submitOne func() error) {
		go func() { failures <- submitOne() }()
	})
	for range submitted {
		err = errors.Join(err, <-failures)
	}
	return submitted, err
}

// ProduceInTurn submits the tasks from one goroutine. A task that is due during another submit is
// late, which shows only in the rate and in the latencies since the due times.
func ProduceInTurn(row *Row, submit Submit) ([]Submitted, error) {
	var failures error
	submitted, err := arrivals(row, submit, func(submitOne func() error) {
		failures = errors.Join(failures, submitOne())
	})
	return submitted, errors.Join(err, failures)
}

func arrivals(row *Row, submit Submit, do func(submitOne func() error)) ([]Submitted, error) {
	payload, err := row.Payloads()
	if err != nil {
		return nil, err
	}
	weights := row.UsedWeights()
	submitted := make([]Submitted, row.Count)
	start := Now() + int64(time.Millisecond)
	for number := range submitted {
		weight := weights[number%len(weights)]
		due := start + int64(number/len(weights))*int64(time.Second)/int64(row.Rate)
		time.Sleep(time.Duration(due - Now()))
		do(func() error {
			err := submit(QueueName(weight), payload(uint64(number)))
			submitted[number] = Submitted{Number: number, Weight: weight, Due: due, Returned: Now()}
			return err
		})
	}
	return submitted, nil
}

// ProducerAskedFor returns the location of the queues if this process was started as a producer.
func ProducerAskedFor() (string, bool) {
	return os.LookupEnv(producerVariable)
}

// PrintSubmitted prints the output of a producer.
func PrintSubmitted(submitted []Submitted) error {
	output := bufio.NewWriter(os.Stdout)
	for _, each := range submitted {
		fmt.Fprintln(output, each.Number, each.Weight, each.Due, each.Returned)
	}
	return output.Flush()
}

// ProduceElsewhere starts this program again as a producer.
func ProduceElsewhere(place string) ([]Submitted, error) {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), producerVariable+"="+place)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the producer failed: %w: %s", err, complaint.String())
	}
	var submitted []Submitted
	for line := range bytes.Lines(output) {
		var each Submitted
		if _, err := fmt.Sscan(string(line), &each.Number, &each.Weight, &each.Due, &each.Returned); err != nil {
			return nil, fmt.Errorf("`%s` is no submit: %w", line, err)
		}
		submitted = append(submitted, each)
	}
	return submitted, nil
}
