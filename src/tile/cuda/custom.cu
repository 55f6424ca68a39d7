/* SPDX-License-Identifier: Apache-2.0 */
/* custom.cu - a user's kernel. "generated.cuh" is their text at its first inclusion, and at the second, from epilogue.cuh, the epilogue's function. */
#include "generated.cuh"
