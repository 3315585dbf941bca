package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// The time limit for the start of Redis.
const patience = 10 * time.Second

// redisServer is a Redis server on the loopback interface, with its own directory of files.
type redisServer struct {
	address   string
	directory string
	command   *exec.Cmd
}

// startRedis starts Redis with an append-only file that is synced `always` or `everysec`.
func startRedis(directory, synchronous string) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed (Debian's package redis-server)")
	}
	directory, err = os.MkdirTemp(directory, "redis-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program,
		"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", directory, "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", synchronous)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	server := &redisServer{address: fmt.Sprintf("127.0.0.1:%d", port), directory: directory, command: command}
	if err := server.check(synchronous); err != nil {
		server.stop()
		return nil, err
	}
	return server, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// check waits until Redis accepts connections, and reads back its sync settings.
func (server *redisServer) check(synchronous string) error {
	client := redis.NewClient(&redis.Options{Addr: server.address})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for client.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			return errors.New("redis-server does not accept connections")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, expected := range map[string]string{"appendonly": "yes", "appendfsync": synchronous} {
		found, err := client.ConfigGet(ctx, name).Result()
		if err != nil || found[name] != expected {
			return fmt.Errorf("redis-server has %s %s and not %s (%v)", name, found[name], expected, err)
		}
	}
	return nil
}

// stop ends the process that was started, and no other; a second call has no effect.
func (server *redisServer) stop() {
	if server.command == nil {
		return
	}
	_ = server.command.Process.Signal(syscall.SIGTERM)
	_ = server.command.Wait()
	server.command = nil
	_ = os.RemoveAll(server.directory)
}
