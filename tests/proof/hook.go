package main

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"
)

// A slowHook is another webhook of the plane, which allows each Binding and each pod with a node: somebody else's, and
// now and then a slow one. What it holds was allowed by claimguard already, and is executed when it lets it go.
type slowHook struct {
	listener net.Listener
	mutex    sync.Mutex
	catching *catch
}

// A catch is for the next request that matches; it is held until it is let go.
type catch struct {
	matches func(user, pod string) bool
	caught  chan string // the pod's name
	let     chan struct{}
}

const slowHookPort = ":9443"

func newSlowHook(certificateFile, keyFile string) (*slowHook, error) {
	certificate, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		return nil, err
	}
	hook := &slowHook{}
	hook.listener, err = tls.Listen("tcp", network+self+slowHookPort, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	go func() { _ = (&http.Server{Handler: hook}).Serve(hook.listener) }()
	return hook, nil
}

func (hook *slowHook) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	var review object
	if json.NewDecoder(request.Body).Decode(&review) != nil {
		return
	}
	pod := text(review, "request", "object", "metadata", "name")
	hook.hold(text(review, "request", "userInfo", "username"), pod)
	_ = json.NewEncoder(out).Encode(object{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": object{"uid": at(review, "request", "uid"), "allowed": true}})
}

func (hook *slowHook) hold(user, pod string) {
	hook.mutex.Lock()
	held := hook.catching
	if held == nil || !held.matches(user, pod) {
		hook.mutex.Unlock()
		return
	}
	hook.catching = nil
	hook.mutex.Unlock()
	held.caught <- pod
	<-held.let
}

// catch waits until a request that matches is held, and returns the pod's name and what lets it go. Nil: none comes in
// time.
func (hook *slowHook) catch(matches func(user, pod string) bool, timeout time.Duration) (string, func()) {
	next := &catch{matches, make(chan string, 1), make(chan struct{})}
	hook.mutex.Lock()
	hook.catching = next
	hook.mutex.Unlock()
	select {
	case pod := <-next.caught:
		return pod, func() { close(next.let) }
	case <-time.After(timeout):
		hook.mutex.Lock()
		defer hook.mutex.Unlock()
		if hook.catching == next {
			hook.catching = nil
		} else {
			close(next.let)
		}
		return "", nil
	}
}
