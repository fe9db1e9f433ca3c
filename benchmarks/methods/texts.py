"""Descriptions of the methods in docs/methods.md."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """One section.

    Attributes:
        title: Class and main parameters.
        formula: Equation.
        size: Bytes or bits of d values.
        promise: Proved and tested guarantee.
        use: When to use it.
        reference: Original publication.
    """

    title: str
    formula: str
    size: str
    promise: str
    use: str
    reference: str


SPARSIFIERS = (
    Text(
        "TopK(ratio | k, bucket=None)",
        "the k entries of largest magnitude, ties by the lowest index; with `bucket`, k "
        "of every `bucket` consecutive values",
        "k values and k compressed indices of log2(d/k) + about 1.5 bits each, instead of 32",
        "|v - TopK(v)|^2 <= (1 - k/d) |v|^2, the smallest error of any k entries. Biased: needs "
        "error feedback",
        "first choice for SGD on slow links: the largest entries have most of the norm of real "
        "gradients. With a bucket the bound is the same, selection needs one pass, and entries "
        "are spread over layers that differ in scale. With Adam and similar optimizers use QSGD: "
        "what waits in the residual is late",
        "Aji and Heafield 2017; buckets: Renggli et al. 2019 (SparCML); convergence: Alistarh et "
        "al. 2018, Stich et al. 2018",
    ),
    Text(
        "RandomK(ratio | k, scaled=True, shared=False)",
        "k entries at random indices, drawn from the seed; multiplied by d/k if scaled",
        "k values; with a seed that all ranks share no indices, and the sum has k entries too",
        "scaled: unbiased, E|C(v)|^2 = (d/k) |v|^2. Unscaled: E|v - C(v)|^2 = (1 - k/d) |v|^2, "
        "for use with error feedback",
        "if selection is too expensive, or as a baseline for other sparsifiers",
        "Stich et al. 2018; Wangni et al. 2018",
    ),
    Text(
        "Threshold(value | ratio, strom=False)",
        "all entries with |v_i| >= lambda; with `ratio`, lambda is sampled, reused and corrected; "
        "with `strom`, +lambda or -lambda is sent for each, and the residual has the difference",
        "as TopK, with a k that varies; Strom's values are one bit each in principle",
        "|v - C(v)|^2 <= d lambda^2",
        "`ratio` if the exact k does not matter and selection must be cheap; a fixed value "
        "needs tuning for each model",
        "Strom 2015; Dryden et al. 2016; Lin et al. 2018; Li and Hoefler 2022",
    ),
    Text(
        "BlockTopK(ratio | k, block=64)",
        "the k blocks of consecutive values with the largest norm",
        "k blocks of values with one index each",
        "|v - C(v)|^2 <= (1 - k/blocks) |v|^2",
        "embeddings and other matrices with few large rows",
        "as TopK, on rows",
    ),
)

QUANTIZERS = (
    Text(
        "QSGD(bits | levels, bucket=256, norm='max' | 'l2', coder=None, reduced_bits=None)",
        "n sign(v_i) xi_i / s with n the norm of the bucket, s levels, and xi_i the level below "
        "or above s |v_i| / n, chosen at random so that the expectation is v_i",
        "d b bits + 32 per bucket, s = 2^(b-1) - 1; fewer with a coder: about 0.8 d at 2 bits with "
        "'rice' (claim 3 for 'elias')",
        "unbiased; E|Q - v|^2 <= min(d/s^2, sqrt(d)/s) |v|^2 for the 2-norm of d values",
        "first choice among quantizers, and with Adam: 3 or 4 bits train as float32 does, and need "
        "neither error feedback nor tuning. `coder=` is for slow links, where encoding time does "
        "not matter. `reduced_bits=` gives sums more bits: more than two ranks quantize them again",
        "Alistarh, Grubic, Li, Tomioka, Vojnovic 2017",
    ),
    Text(
        "NUQSGD(bits=4, bucket=1024)",
        "as QSGD with levels 0, 2^-s, ..., 1/2, 1 of the 2-norm",
        "d b bits + 32 per bucket",
        "unbiased; E|Q - v|^2 <= (1/8 + min(2^(-2s-2) d, 2^-s sqrt d)) |v|^2",
        "few bits and long buckets of uneven values, where QSGD's uniform levels are too coarse",
        "Ramezani-Kebrya, Faghri, Roy 2019",
    ),
    Text(
        "TernGrad(clip=2.5, scale=None, count_zeros=True)",
        "s sign(v_i) with probability |v_i|/s, else 0; s = max |v| after clipping at 2.5 "
        "standard deviations; all ranks use the largest s, so that ternary values can be summed",
        "2 bits per value (1.58 in principle) and one scale",
        "unbiased but for the clipping; variance s |v|_1 - |v|^2",
        "integer sums, for hardware that adds integers; otherwise QSGD 2 bits, with one scale per "
        "bucket. For gradients that are mostly zero, `count_zeros=False`: zeros do not count in "
        "the standard deviation, or clipping would remove nearly all. `compress` leaves recurrent "
        "layers out; output layers of many classes are beyond its fence (docs/torch.md)",
        "Wen et al. 2017",
    ),
    Text(
        "OneBit(bucket=None, threshold='zero' | 'mean')",
        "every negative value becomes the mean of the negative values, every other value the mean "
        "of the others",
        "1 bit per value and two float32 per bucket; without a bucket, a column, or 128 values in "
        "messages of Compressed",
        "the best two values for that partition; bucket sums are preserved. Biased: needs error "
        "feedback, and stalls without (claim 1)",
        "fewest bits with which networks still train; the owner of a range has a residual too. "
        "Output layers of many classes are beyond its fence (docs/torch.md)",
        "Seide, Fu, Droppo, Li, Yu 2014",
    ),
    Text(
        "Sign(bucket=None, scale=None)",
        "(|v|_1 / d) sign(v_i), or scale sign(v_i)",
        "1 bit per value and one float32 per bucket",
        "|v - C(v)|^2 = (1 - |v|_1^2 / (d |v|^2)) |v|^2. Biased: needs error feedback",
        "as OneBit, with one scale",
        "Karimireddy, Rebjock, Stich, Jaggi 2019",
    ),
    Text(
        "Natural()",
        "sign and a power of two, the next below or above at random",
        "9 bits per value",
        "unbiased, E|C(v) - v|^2 <= |v|^2 / 8 for every value",
        "values of very different magnitude in one vector; there is no bucket to choose",
        "Horvath, Ho, Horvath, Sahu, Canini, Richtarik 2019",
    ),
    Text(
        "Half(dtype='float16' | 'bfloat16')",
        "rounded to 16 bits",
        "2 bytes per value",
        "a relative error of at most 2^-11 or 2^-8 per value",
        "fast networks, where half of the bytes is enough",
        "IEEE 754; bfloat16: Google Brain",
    ),
)

METHODS = (
    Text(
        "Compressed(sparsify=None, quantize=None, error_feedback=True, momentum=0, nesterov=False, "
        "masking=False, warm_up=0, clip=None, global_topk=None, fence=None, small=None)",
        "corrected = residual + gradient; sent = quantize(sparsify(corrected)); "
        "residual = corrected - seen; mean = sum of sent / P",
        "that of the sparsifier and the quantizer",
        "nothing is lost: applied means plus residuals equal the gradients, for any sparsifier "
        "and quantizer. Converges if they are contractions, or unbiased",
        "with any of the above",
        "Seide et al. 2014; Stich et al. 2018; Karimireddy et al. 2019",
    ),
    Text(
        "Adaptive(sparsify, quantize, every=100, budget='bytes', scale=1.0, options=())",
        "Compressed with a ratio (1/2 to 2 times TopK's), or 2 to 8 bits, for each parameter; "
        "every 100 steps a knapsack minimizes the measured squared error within the bytes of the "
        "uniform setting, or the bytes within its error",
        "as Compressed with the uniform setting",
        "expected bytes (or error) of a choice are within the budget, its error (or bytes) at most "
        "that of the uniform setting, as measured at that step; nothing is lost",
        "SGD, if layers differ in scale",
        "Alimohammadi, Markov, Frantar, Alistarh 2023 (L-GreCo)",
    ),
    Text(
        "DGC(ratio, momentum=0.9, clip=None, masking=True, warm_up=0)",
        "u = m u + g; v = v + u; the largest entries of v are sent, and set to 0 in v and u",
        "as TopK",
        "without masking: weights minus pending updates are those of dense momentum. With "
        "masking, an entry that is sent every n steps keeps 1 - m (1 - m^n) / (n (1 - m)) of its "
        "momentum: at ratio 1 it is SGD without momentum",
        "ratios around 0.1 %, where ordinary momentum would apply stale gradients; with plain SGD "
        "at one to six times the learning rate of the dense run",
        "Lin, Han, Mao, Wang, Dally 2018",
    ),
    Text(
        "TopKAdam(sparsify=TopK(0.01), quantize=None, warm_up=None, steps=None)",
        "first phase, by default 15 % of steps, or 1,000 steps if their number is not given: 4-bit "
        "gradients and Adam; then v is frozen, and with error feedback the largest entries of "
        "lr m / (sqrt(v) + eps) are sent, with a momentum m per rank",
        "as QSGD, then as TopK",
        "applied plus pending updates are those of Adam with a frozen v; equal to Adam until then",
        "Adam and AdamW on very slow links, if the dense score is not sensitive to delays: compare "
        "with QSGD(3, bucket=512) first (docs/training.md)",
        "Tang et al. 2021 for the frozen moment",
    ),
    Text(
        "OneBitAdam(quantize=Sign(bucket=1024), warm_up=None, steps=None)",
        "first phase as TopKAdam; then the sign of beta1 m + (1 - beta1) (g + residual) is sent, "
        "and the mean is the new m of all ranks",
        "as QSGD, then 1 bit per value",
        "m plus the residuals is the mean of all first moments",
        "as TopKAdam; a first phase that is too short loses accuracy",
        "Tang et al. 2021",
    ),
    Text(
        "PowerSGD(rank, warm_start=True, error_feedback=True)",
        "P = orthonormal(mean(M Q)); Q = mean(M^T P); mean = P Q^T",
        "r (n + m) instead of n m values",
        "linear: P ranks compute what one rank computes from the mean; the error is that of a "
        "projection",
        "SGD and matrices of low rank, on engines with dense allreduce only; `compress` leaves "
        "recurrent layers out. On CPUs its products "
        "cost more than a selection",
        "Vogels, Karimireddy, Jaggi 2019",
    ),
    Text(
        "MajorityVote(momentum=0)",
        "sign(sum over ranks of sign(g))",
        "1 bit per value in each direction",
        "the majority of the ranks; a minority cannot change it where the others agree. "
        "No error feedback: may stall where gradients are skewed",
        "ranks that are not trusted; needs its own learning rate",
        "Bernstein, Wang, Azizzadenesheli, Anandkumar 2018",
    ),
    Text(
        "Dense()",
        "sum of gradients / P",
        "4 bytes per value",
        "the exact mean",
        "fast networks; `auto` chooses it there",
        "any textbook",
    ),
)

TEXTS = {"Sparsifiers": SPARSIFIERS, "Quantizers": QUANTIZERS, "Aggregation": METHODS}

ONE_FRAME = """\
## Known methods as instances

`Compressed` is error feedback around any sparsifier and any quantizer; most methods of the
literature are settings of it. The learning rate is applied outside of the method: Algorithm 1
applies it inside the accumulator, which differs if the learning rate changes between steps.
"""

INSTANCES = (
    (
        "1BitSGD (Seide 2014)",
        "Compressed(quantize=OneBit())",
        "the owner of a range quantizes the sum to one bit too, and has a residual for that error",
    ),
    (
        "QSGD (Alistarh 2017)",
        "Compressed(quantize=QSGD(bits=4), error_feedback=False)",
        "unbiased, so no error feedback is needed",
    ),
    (
        "TernGrad (Wen 2017)",
        "Compressed(quantize=TernGrad(), error_feedback=False)",
        "ranks agree on one scale first, so that ternary values can be summed",
    ),
    (
        "EF-signSGD (Karimireddy 2019)",
        "Compressed(quantize=Sign())",
        "the scale is the mean magnitude",
    ),
    (
        "SparCML, Algorithm 1 (Renggli 2019)",
        "Compressed(TopK(k=4, bucket=512), QSGD(bits=4))",
        "its residual omits the unbiased quantization error; ours includes it",
    ),
    (
        "Ok-Topk (Li and Hoefler 2022)",
        'Compressed(TopK(0.01), algorithm="oktopk")',
        "`examples/plugins/oktopk.py`: only entries among the largest sums leave the residual",
    ),
    (
        "gTop-k (Shi 2019)",
        "Compressed(TopK(0.01), global_topk=TopK(0.01))",
        "the same rule, after a lossless allreduce",
    ),
)
