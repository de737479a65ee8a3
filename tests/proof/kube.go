package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An object, as JSON has it.
type object = map[string]any

// at is the value at a path of members; nil: there is none.
func at(from any, path ...string) any {
	for _, key := range path {
		members, ok := from.(object)
		if !ok {
			return nil
		}
		from = members[key]
	}
	return from
}

func text(from any, path ...string) string {
	value, _ := at(from, path...).(string)
	return value
}

func list(from any, path ...string) []any {
	value, _ := at(from, path...).([]any)
	return value
}

// A server that speaks JSON over HTTP: an API server, claimguard, or etcd's gateway.
type server struct {
	name, base, token string
	client            *http.Client
}

func newServer(name, base, token string, roots *x509.CertPool) *server {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	return &server{name, base, token, &http.Client{Transport: transport}}
}

// call sends a request. The status is 0 if there is no answer in time: its outcome is unknown.
func (s *server) call(method, path string, body any, timeout time.Duration) (int, object) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic(err) // of this program's own making
		}
		reader = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, reader)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	var out object
	if json.NewDecoder(answer.Body).Decode(&out) != nil {
		return 0, nil
	}
	return answer.StatusCode, out
}

// text reads a page that is no JSON; empty: there is no answer.
func (s *server) text(path string, timeout time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		panic(err)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}

// must repeats a request until it succeeds: for what the plane consists of.
func (s *server) must(method, path string, body any) error {
	var status int
	var out object
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if status, out = s.call(method, path, body, 5*time.Second); status/100 == 2 || status == http.StatusConflict {
			return nil
		}
	}
	return fmt.Errorf("%s %s at %s: %d %v", method, path, s.name, status, out)
}
