//go:build tools

// Package tools keeps the main package of etcd's server among what this module requires.
package tools

import _ "go.etcd.io/etcd/server/v3"
