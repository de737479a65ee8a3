// Package peer is what both programs share: how they read a snapshot, and how the benchmark finds
// them and their versions. None of it is measured but the reading.
package peer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Read passes each item of a List that kubectl or the benchmark's generator wrote to take, one after
// the other: the file is never in memory as a whole.
func Read(path string, take func(kind string, item json.RawMessage) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReaderSize(file, 1<<20))
	if err := findItems(decoder); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for decoder.More() {
		var item json.RawMessage
		var meta metav1.TypeMeta
		if err := decoder.Decode(&item); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := json.Unmarshal(item, &meta); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := take(meta.Kind, item); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// findItems leaves the decoder before the first item.
func findItems(decoder *json.Decoder) error {
	for {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		if token == "items" {
			_, err = decoder.Token()
			return err
		}
	}
}

// Serve serves what http.HandleFunc has registered, and GET /version, on a free port, which it
// prints. module is the one whose version counts. Returns only with an error.
func Serve(module string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	http.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s %s, %s", module, version(module), runtime.Version())
	})
	fmt.Printf("listening address=%s\n", listener.Addr())
	return http.Serve(listener, nil)
}

// version is that of a module which this program was built from.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, from := range info.Deps {
		if from.Path == module && from.Replace != nil {
			return from.Replace.Version
		}
		if from.Path == module {
			return from.Version
		}
	}
	return "of unknown version"
}
