// SPDX-License-Identifier: Apache-2.0

package node_test

import "k8s.io/apimachinery/pkg/api/resource"

func resourceOf(s string) resource.Quantity { return resource.MustParse(s) }
