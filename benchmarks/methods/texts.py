"""What docs/methods.md says of each method, in few words."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """One section.

    Attributes:
        title: The class, as it is called.
        formula: What it computes.
        size: Bytes or bits of d values.
        promise: What is proved, and tested.
        use: When to take it.
        reference: Who wrote it first.
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
        "the k entries of largest magnitude; equal ones by the lowest index; with `bucket`, k "
        "of every so many consecutive values",
        "k values and k coded indices: log2(d/k) + about 1.5 bits each, where 32-bit indices "
        "would take 32",
        "|v - TopK(v)|^2 <= (1 - k/d) |v|^2, and no other k entries leave less. Biased: needs "
        "error feedback",
        "first choice on slow links: the largest entries have most of the norm of real gradients. "
        "The bucket form has the same bound, is found in one pass, and spreads entries over "
        "layers that differ in scale",
        "Aji and Heafield 2017; buckets: Renggli et al. 2019 (SparCML); convergence: Alistarh et "
        "al. 2018, Stich et al. 2018",
    ),
    Text(
        "RandomK(ratio | k, scaled=True, shared=False)",
        "k entries at places that the seed decides; times d/k if scaled",
        "k values; with a seed that all ranks share no index at all, and sums stay of length k",
        "scaled: unbiased, E|C(v)|^2 = (d/k) |v|^2. Unscaled: E|v - C(v)|^2 = (1 - k/d) |v|^2, "
        "for use with feedback",
        "when selecting costs too much, or as the honest baseline of any other selection",
        "Stich et al. 2018; Wangni et al. 2018",
    ),
    Text(
        "Threshold(value | ratio, strom=False)",
        "all entries with |v_i| >= lambda; with `ratio`, lambda is sampled, reused and corrected; "
        "with `strom`, +lambda or -lambda is sent for each and the difference kept",
        "as TopK, of a k that varies; Strom's values are one bit each in principle",
        "|v - C(v)|^2 <= d lambda^2",
        "`ratio` where the exact k does not matter and selection must be cheapest; a fixed value "
        "has to be tuned for each model",
        "Strom 2015; Dryden et al. 2016; Lin et al. 2018; Li and Hoefler 2022",
    ),
    Text(
        "BlockTopK(ratio | k, block=64)",
        "the k blocks of consecutive values with the largest norm",
        "k blocks of values, an index for each",
        "|v - C(v)|^2 <= (1 - k/blocks) |v|^2",
        "embeddings and other matrices whose rows are large or small together",
        "as TopK, on rows",
    ),
)

QUANTIZERS = (
    Text(
        "QSGD(bits | levels, bucket=1024, norm='max' | 'l2', coder=None)",
        "n sign(v_i) xi_i / s with n the norm of the bucket, s levels, and xi_i the level below "
        "or above s |v_i| / n at random, so that it is right on average",
        "d b bits + 32 a bucket, s = 2^(b-1) - 1; with a coder fewer (claim 3)",
        "unbiased; E|Q - v|^2 <= min(d/s^2, sqrt(d)/s) |v|^2 for the 2-norm of d values",
        "first choice among codes: 4 bits train as float32 does, and need neither feedback nor "
        "tuning. `coder=` is for slow links, where processors have time",
        "Alistarh, Grubic, Li, Tomioka, Vojnovic 2017",
    ),
    Text(
        "NUQSGD(bits=4, bucket=1024)",
        "as QSGD with levels 0, 2^-s, ..., 1/2, 1 of the 2-norm",
        "d b bits + 32 a bucket",
        "unbiased; E|Q - v|^2 <= (1/8 + min(2^(-2s-2) d, 2^-s sqrt d)) |v|^2",
        "few bits and long buckets of uneven values, where QSGD's even levels are too coarse",
        "Ramezani-Kebrya, Faghri, Roy 2019",
    ),
    Text(
        "TernGrad(clip=2.5, scale=None)",
        "s sign(v_i) with probability |v_i|/s, else 0; s = max |v| after clipping at 2.5 "
        "standard deviations; ranks share the largest s, so that ternaries add up",
        "2 bits a value (1.58 in principle) and one scale",
        "unbiased but for the clipping; variance s |v|_1 - |v|^2",
        "sums of whole numbers, for hardware that adds them; else QSGD 2 bits has a scale a bucket",
        "Wen et al. 2017",
    ),
    Text(
        "OneBit(bucket=None, threshold='zero' | 'mean')",
        "the mean of the negative values for those, the mean of the others for them",
        "1 bit a value and two float32 a bucket",
        "the best two values for that partition; sums of buckets are kept. Biased: needs error "
        "feedback, and stalls without (claim 1)",
        "fewest bits at which networks still train; the owner of a range keeps a residual too",
        "Seide, Fu, Droppo, Li, Yu 2014",
    ),
    Text(
        "Sign(bucket=None, scale=None)",
        "(|v|_1 / d) sign(v_i); with `scale` that number instead",
        "1 bit a value and one float32 a bucket",
        "|v - C(v)|^2 = (1 - |v|_1^2 / (d |v|^2)) |v|^2. Biased: needs error feedback",
        "as OneBit, with one scale",
        "Karimireddy, Rebjock, Stich, Jaggi 2019",
    ),
    Text(
        "Natural()",
        "sign and a power of two, that below or above at random",
        "9 bits a value",
        "unbiased, E|C(v) - v|^2 <= |v|^2 / 8 for every value by itself",
        "values of very different size in one vector, no bucket to choose",
        "Horvath, Ho, Horvath, Sahu, Canini, Richtarik 2019",
    ),
    Text(
        "Half(dtype='float16' | 'bfloat16')",
        "rounded to 16 bits",
        "2 bytes a value",
        "an error of at most 2^-11 or 2^-8 of each value",
        "the network is fast and only half of it is wanted",
        "IEEE 754; bfloat16: Google Brain",
    ),
)

METHODS = (
    Text(
        "Compressed(sparsify=None, quantize=None, error_feedback=True, global_topk=None)",
        "owed = residual + gradient; sent = quantize(sparsify(owed)); residual = owed - seen; "
        "mean = sum of sent / P",
        "that of its parts",
        "nothing is lost: what was applied and all residuals are what was owed, whatever the "
        "parts are. Converges if they contract, or are unbiased",
        "the usual way to use any of the above",
        "Seide et al. 2014; Stich et al. 2018; Karimireddy et al. 2019",
    ),
    Text(
        "DGC(ratio, momentum=0.9, clip=None, masking=True, warm_up=0)",
        "u = m u + g; v = v + u; the largest of v are sent, where v and u become 0",
        "as TopK",
        "at ratio 1 it is momentum SGD; no theorem for the rest",
        "99.9 % left out, where momentum would otherwise push with gradients of long ago",
        "Lin, Han, Mao, Wang, Dally 2018",
    ),
    Text(
        "PowerSGD(rank, warm_start=True, error_feedback=True)",
        "P = orthonormal(mean(M Q)); Q = mean(M^T P); mean = P Q^T",
        "r (n + m) values of n m",
        "linear: P ranks do what one would with the mean; the error is that of a projection",
        "matrices of low rank on engines that only sum dense vectors; on CPUs its products cost "
        "more than a selection",
        "Vogels, Karimireddy, Jaggi 2019",
    ),
    Text(
        "MajorityVote(momentum=0)",
        "sign(sum over ranks of sign(g))",
        "1 bit a value up, 1 bit down",
        "the vote of most ranks; fewer than half of them cannot turn it where the others agree. "
        "No feedback: may stall where gradients are skewed",
        "ranks that are not to be trusted, and a learning rate of its own",
        "Bernstein, Wang, Azizzadenesheli, Anandkumar 2018",
    ),
    Text(
        "Dense()",
        "sum of gradients / P",
        "4 bytes a value",
        "the mean itself",
        "fast networks; `auto` says when",
        "any textbook",
    ),
)

TEXTS = {"Sparsifiers": SPARSIFIERS, "Quantizers": QUANTIZERS, "Aggregation": METHODS}

ONE_FRAME = """\
## Known methods as instances

`Compressed` is error feedback around any selection and any code; most methods of the literature
are settings of it. The learning rate is constant here and stays outside: Algorithm 1 has it
inside the accumulator, which matters when it changes from step to step.
"""

INSTANCES = (
    (
        "1BitSGD (Seide 2014)",
        "Compressed(quantize=OneBit())",
        "the owner of a range codes the sum in one bit too, and keeps that error itself",
    ),
    (
        "QSGD (Alistarh 2017)",
        "Compressed(quantize=QSGD(bits=4), error_feedback=False)",
        "unbiased, so nothing has to be carried over",
    ),
    (
        "TernGrad (Wen 2017)",
        "Compressed(quantize=TernGrad(), error_feedback=False)",
        "ranks agree on one scale first, so that ternaries add up",
    ),
    (
        "EF-signSGD (Karimireddy 2019)",
        "Compressed(quantize=Sign())",
        "the scale is the mean magnitude",
    ),
    (
        "SparCML, Algorithm 1 (Renggli 2019)",
        "Compressed(TopK(k=4, bucket=512), QSGD(bits=4))",
        "its residual lets the unbiased coding error go; ours, owed - seen, carries it over too",
    ),
    (
        "Ok-Topk (Li and Hoefler 2022)",
        'Compressed(TopK(0.01), algorithm="oktopk")',
        "only what is among the largest sums leaves a residual",
    ),
    (
        "gTop-k (Shi 2019)",
        "Compressed(TopK(0.01), global_topk=TopK(0.01))",
        "the same rule, after an exact sum",
    ),
)
