package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/provenance"
	"sigs.k8s.io/kustomize/kustomize/v5/commands/build"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// Kustomization is one build: of a folder on the disk, or of files that are only in this request.
type Kustomization struct {
	// Folder is an absolute path.
	Folder string `json:"folder"`
	// Files are all files of the folder, by name. With Files, the folder need not exist on the disk; only files outside of it
	// that these refer to are read from there.
	Files map[string]string `json:"files"`
	// Unrestricted lets a kustomization load files that are not below it.
	Unrestricted bool `json:"unrestricted"`
}

const (
	folderState = "folder"
	absentState = "absent"
	// noGit is kustomize's message if it cannot start git, because no git is on the PATH of a build.
	noGit = "no 'git' program on path"
)

// maxCopied is the number of bytes that the copy operations of one JSON patch may add, as in the kube-apiserver: a list that is
// copied into itself twenty times becomes a million lists.
const maxCopied = 3 << 20

func init() {
	jsonpatch.AccumulatedCopySizeLimit = maxCopied
}

// kustomizeVersion is the version that `kubectl version` names for the same library.
func kustomizeVersion() string {
	return provenance.GetProvenance().Semver()
}

// Build does what `kubectl kustomize` does, which is the same command of kustomize, without a network and other programs.
func Build(request Kustomization) (answer Answer) {
	var output, said bytes.Buffer
	log.SetOutput(&said)
	files := newTracedFiles(request)
	restore, refused := withoutNetwork()
	defer restore()
	defer forgetSchema()
	defer func() {
		if found := recover(); found != nil {
			answer = Answer{Errors: fmt.Appendf(said.Bytes(), "error: panic: %v\n", found), Code: 1}
		}
		answer.Heap = heap()
	}()
	command := build.NewCmdBuild(files, build.MakeHelp("kubectl", "kustomize"), &output)
	command.SilenceErrors, command.SilenceUsage = true, true
	arguments := []string{request.Folder}
	if request.Unrestricted {
		arguments = append(arguments, "--load-restrictor", "LoadRestrictionsNone")
	}
	command.SetArgs(arguments)
	if err := command.Execute(); err != nil {
		remote := *refused || strings.Contains(err.Error(), noGit)
		return Answer{Errors: fmt.Appendf(said.Bytes(), "error: %v\n", err), Code: 1, Remote: remote}
	}
	return Answer{Output: output.Bytes(), Errors: said.Bytes(), Files: files.trace()}
}

// forgetSchema restores the library's own schema after a build that has brought another one.
func forgetSchema() {
	if openapi.GetSchemaVersion() != defaultSchema {
		if err := openapi.SetSchema(map[string]string{"version": defaultSchema}, nil, true); err != nil {
			panic(err)
		}
		openapi.ResetOpenAPI()
	}
}

var defaultSchema = openapi.GetSchemaVersion()

// withoutNetwork hides all programs and fails all requests over HTTP, until restore is called.
func withoutNetwork() (restore func(), refused *bool) {
	path, transport := os.Getenv("PATH"), http.DefaultTransport
	refused = new(bool)
	os.Setenv("PATH", "")
	http.DefaultTransport = refusing{refused}
	return func() {
		os.Setenv("PATH", path)
		http.DefaultTransport = transport
	}, refused
}

type refusing struct{ seen *bool }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	*r.seen = true
	return nil, fmt.Errorf("%s: the engine has no network", request.URL.Host)
}

var errReadOnly = errors.New("the file system of a build is read-only")

// tracedFiles is a read-only file system: the files of the request over those of the disk. It records what the build has read
// from the disk.
type tracedFiles struct {
	filesys.FileSystem
	place  string
	made   map[string][]byte
	states map[string]string
	isLost bool // whether the build has read something that cannot be recorded, such as the target of a link
}

func newTracedFiles(request Kustomization) *tracedFiles {
	made := make(map[string][]byte, len(request.Files))
	for name, text := range request.Files {
		made[filepath.Join(request.Folder, name)] = []byte(text)
	}
	place := ""
	if len(made) > 0 {
		place = request.Folder
	}
	return &tracedFiles{filesys.MakeFsOnDisk(), place, made, map[string]string{}, !request.Unrestricted}
}

// trace returns the state of each path that the build has read, or nil if the result may depend on more than these states.
func (t *tracedFiles) trace() map[string]string {
	if t.isLost {
		return nil
	}
	return t.states
}

func (t *tracedFiles) isMade(path string) bool {
	return t.place != "" && (path == t.place || strings.HasPrefix(path, t.place+string(filepath.Separator)))
}

func (t *tracedFiles) ReadFile(path string) ([]byte, error) {
	if t.isMade(path) {
		if text, found := t.made[path]; found {
			return text, nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	text, err := t.FileSystem.ReadFile(path)
	if err != nil {
		t.look(path)
		return nil, err
	}
	digest := sha256.Sum256(text)
	t.keep(path, hex.EncodeToString(digest[:]))
	return text, nil
}

func (t *tracedFiles) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if t.isMade(path) {
		if _, found := t.made[path]; found {
			return filesys.ConfirmedDir(filepath.Dir(path)), filepath.Base(path), nil
		}
		if path == t.place {
			return filesys.ConfirmedDir(path), "", nil
		}
		return "", "", &fs.PathError{Op: "lstat", Path: path, Err: syscall.ENOENT}
	}
	t.look(path)
	folder, name, err := t.FileSystem.CleanedAbs(path)
	if err == nil && folder.Join(name) != filepath.Clean(path) {
		t.isLost = true // it leads through a link, which may lead elsewhere the next time
	}
	return folder, name, err
}

func (t *tracedFiles) IsDir(path string) bool {
	if t.isMade(path) {
		return path == t.place
	}
	t.look(path)
	return t.FileSystem.IsDir(path)
}

func (t *tracedFiles) Exists(path string) bool {
	if t.isMade(path) {
		return path == t.place || t.made[path] != nil
	}
	t.look(path)
	return t.FileSystem.Exists(path)
}

// look records the state of a path that is not read as a file.
func (t *tracedFiles) look(path string) {
	found, err := os.Stat(path)
	switch {
	case err == nil && found.IsDir():
		t.keep(path, folderState)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		t.keep(path, absentState)
	case err != nil || t.states[path] == "":
		t.isLost = true
	}
}

func (t *tracedFiles) keep(path, state string) {
	if before, known := t.states[path]; !filepath.IsAbs(path) || known && before != state {
		t.isLost = true
	}
	t.states[path] = state
}

func (t *tracedFiles) Open(path string) (filesys.File, error) {
	t.isLost = true
	return t.FileSystem.Open(path)
}

func (t *tracedFiles) ReadDir(path string) ([]string, error) {
	t.isLost = true
	return t.FileSystem.ReadDir(path)
}

func (t *tracedFiles) Glob(pattern string) ([]string, error) {
	t.isLost = true
	return t.FileSystem.Glob(pattern)
}

func (t *tracedFiles) Walk(path string, each filepath.WalkFunc) error {
	t.isLost = true
	return t.FileSystem.Walk(path, each)
}

func (t *tracedFiles) Create(string) (filesys.File, error) { return nil, errReadOnly }
func (t *tracedFiles) Mkdir(string) error                  { return errReadOnly }
func (t *tracedFiles) MkdirAll(string) error               { return errReadOnly }
func (t *tracedFiles) RemoveAll(string) error              { return errReadOnly }
func (t *tracedFiles) WriteFile(string, []byte) error      { return errReadOnly }
