// The chart engine: renders charts with Helm's own library, one request after the other, as `helm template` would, and builds
// kustomizations with kustomize's own, as `kubectl kustomize` would. It also executes the templates of ResourceSets.
//
// A request and its answer are JSON in frames: four bytes of length, the highest first, and the text. The process ends when
// its standard input does. It opens no network connection and reads no cluster; the caller starts it with the environment,
// the limits and the user of a run of Helm, and kills it at a deadline.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// The largest request, in bytes: paths, names, the versions of an API server, or all manifests of a chart.
const maxRequest = 64 << 20

// templatesVersion is the version of the requests and answers for templates. An engine that executes no templates prints none.
const templatesVersion = 1

// version is set by the linker to the version of Helm's library; kustomize's is in the program's own list of modules.
var version = "unknown"

func main() {
	if len(os.Args) > 1 {
		if len(os.Args) == 2 && os.Args[1] == "--version" {
			fmt.Printf("%s\nkustomize %s\ntemplates %d\n", version, kustomizeVersion(), templatesVersion)
			return
		}
		fmt.Fprintln(os.Stderr, "usage: wharfinger-engine [--version]\nrenders the charts and builds the kustomizations that its standard input names; see docs/rendering.md")
		os.Exit(2)
	}
	answers := os.Stdout
	os.Stdout = os.Stderr // nothing but answers may get into the stream of answers
	if err := serve(os.Stdin, answers); err != nil {
		fmt.Fprintln(os.Stderr, "wharfinger-engine:", err)
		os.Exit(1)
	}
}

type frame struct {
	text []byte
	err  error
}

// serve answers requests until the input ends, which also ends a render that is under way: nobody waits for it any more.
func serve(input io.Reader, output io.Writer) error {
	frames := make(chan frame)
	go func() {
		reader := bufio.NewReader(input)
		for {
			text, err := readFrame(reader)
			if errors.Is(err, io.EOF) {
				os.Exit(0)
			}
			frames <- frame{text, err}
		}
	}()
	for {
		next := <-frames
		text, err := next.text, next.err
		if err != nil {
			return err
		}
		var request Request
		if err := json.Unmarshal(text, &request); err != nil {
			return fmt.Errorf("cannot read a request: %w", err)
		}
		answer, err := json.Marshal(answered(request))
		if err != nil {
			return err
		}
		if err := writeFrame(output, answer); err != nil {
			return err
		}
	}
}

func answered(request Request) Answer {
	switch {
	case request.Kustomization != nil:
		return Build(*request.Kustomization)
	case request.TemplateSet != nil:
		return Execute(*request.TemplateSet)
	default:
		return Render(request)
	}
}

// readFrame returns io.EOF only between two frames.
func readFrame(reader io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(reader, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxRequest {
		return nil, fmt.Errorf("a request of %d bytes is over the limit of %d", size, maxRequest)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(reader, text); err != nil {
		return nil, fmt.Errorf("a request is incomplete: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return text, nil
}

func writeFrame(writer io.Writer, text []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	_, err := writer.Write(append(head, text...))
	return err
}
