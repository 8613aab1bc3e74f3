// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in portable.h. */
#include "supervisor/portable.h"

#include <stdio.h>

#include "base/base.h"

const struct portable_variable portable_variables[] = {
	/* glibc: memcpy and its like, libm, libraries of glibc-hwcaps.  Unknown names are ignored;
	 * those with _Usable are of 2.32 and before.
	 * glibc.cpu.hwcaps: The GNU C Library manual, "Hardware Capability Tunables". */
	{"GLIBC_TUNABLES",
		"glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,"
		"-AVX512ER,-AVX512PF,-AVX_Fast_Unaligned_Load,-FMA,-FMA4,-BMI1,-BMI2,-LZCNT,-MOVBE,"
		"-ERMS,-FSRM,-RTM,-XSAVEC,-AVX_Usable,-AVX2_Usable,-AVX512F_Usable,-FMA_Usable,"
		"-FMA4_Usable,-XSAVEC_Usable",
		':'},
	/*
	 * The dynamic linker saves registers around lazy binding, in as much room as they needed on
	 * the CPU where the program started.  Without lazy binding it need not.
	 */
	{"LD_BIND_NOW", "1", 0},
	/* Go: internal/cpu; what GOAMD64 requires stays. */
	{"GODEBUG", "cpu.all=off", ','},
	/*
	 * OpenSSL, OPENSSL_ia32cap(3): FMA, MOVBE, XSAVE, OSXSAVE, AVX, F16C, RDRAND and AMD's XOP,
	 * and all of leaf 7.
	 */
	{"OPENSSL_ia32cap", "~0x7c40180000000000:0:0:0:0", 0},
	{"GNUTLS_CPUID_OVERRIDE", "0xe", 0}, /* AES, SSSE3, PCLMUL */
	{"NETTLE_FAT_OVERRIDE", "aesni,pclmul", 0},
	/* HotSpot; says on stderr that it has seen it. */
	{"JAVA_TOOL_OPTIONS",
		"-XX:+IgnoreUnrecognizedVMOptions -XX:UseSSE=4 -XX:UseAVX=0 -XX:-UseFMA "
		"-XX:-UseBMI1Instructions -XX:-UseBMI2Instructions -XX:-UseCountLeadingZerosInstruction "
		"-XX:-UseCountTrailingZerosInstruction -XX:-UseFastStosb -XX:-UseSHA",
		' '},
	{"DOTNET_EnableHWIntrinsic", "0", 0},
	{"OPENBLAS_CORETYPE", "Nehalem", 0},
	{"MKL_ENABLE_INSTRUCTIONS", "SSE4_2", 0},
	{"NPY_DISABLE_CPU_FEATURES", "F16C FMA3 AVX2 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL "
				     "AVX512_ICL", 0},
	{"ATEN_CPU_CAPABILITY", "default", 0}, /* PyTorch */
	{"ONEDNN_MAX_CPU_ISA", "SSE41", 0},
	{"SIMDJSON_FORCE_IMPLEMENTATION", "westmere", 0},
	{"SIMDUTF_FORCE_IMPLEMENTATION", "westmere", 0}, /* node: AVX-512 otherwise */
	{"GALLIUM_OVERRIDE_CPU_CAPS", "sse4.1", 0}, /* Mesa's llvmpipe */
	{"LP_NATIVE_VECTOR_WIDTH", "128", 0},
	/* NSS: what is behind AVX is asked for with it. */
	{"NSS_DISABLE_AVX", "1", 0},
	{"NSS_DISABLE_AVX2", "1", 0},
	{"NSS_DISABLE_HW_SHA", "1", 0},
	{"NSS_DISABLE_ADX", "1", 0},
	{"JSIMD_FORCESSE2", "1", 0}, /* libjpeg-turbo */
	{"VPX_SIMD_CAPS_MASK", "0x3f", 0}, /* libvpx: up to SSE4.1 */
	{"AOM_SIMD_CAPS_MASK", "0x13f", 0}, /* libaom: up to SSE4.2 */
	{"ORC_TARGET", "sse", 0},
};
const size_t portable_n_variables = ARRAY_SIZE(portable_variables);

/* src/hwfeatures.c of libgcrypt has the names; of those it does not know it takes no notice. */
const char portable_gcrypt[] = "# podrun run --portable\n"
			       "padlock-rng\npadlock-aes\npadlock-sha\npadlock-mmul\n"
			       "intel-bmi2\nintel-rdrand\nintel-avx\nintel-avx2\n"
			       "intel-fast-vpgather\nintel-shaext\nintel-vaes-vpclmul\n"
			       "intel-gfni\nintel-avx512\n";

char *portable_setting(const struct portable_variable *v, const char *had)
{
	char *text;
	int n;

	if (v->join && had && *had)
		n = asprintf(&text, "%s=%s%c%s", v->name, had, v->join, v->value);
	else
		n = asprintf(&text, "%s=%s", v->name, v->value);
	return n < 0 ? NULL : text;
}
