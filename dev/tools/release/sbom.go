package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// A bom is a software bill of materials in the form of CycloneDX 1.6: what the binary consists of.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// writeSBOM writes the modules that Go has recorded in the binary, and the version of Go.
func (b binary) writeSBOM(out string) error {
	list := bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata:   metadata{b.when.Format(time.RFC3339), module("application", b.info.Main.Path, b.info.Main.Version)},
		Components: []component{module("library", "std", b.info.GoVersion)},
	}
	for _, dependency := range b.info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		list.Components = append(list.Components, module("library", dependency.Path, dependency.Version))
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, b.base()+".cdx.json"), append(text, '\n'), 0o644)
}

func module(kind, path, version string) component {
	url := "pkg:golang/" + path + "@" + version
	return component{kind, url, path, version, url}
}
